package ui

// shortcuts are the keys that web/static/keys.js knows.
var shortcuts = []struct{ key, does string }{
	{"/", "Go to the filter"},
	{"j", "Next row"},
	{"k", "Previous row"},
	{"Enter", "Open the row"},
	{"p", "Pause, or go on"},
	{"t", "Next theme"},
	{"?", "This help"},
}

var helpRoles = []struct {
	badge
	meaning string
}{
	{badge{"active", "active"}, "grants the locks"},
	{badge{"standby", "standby"}, "has all that the active has, and takes over when it goes"},
	{badge{"joining", "joining"}, "is being brought into step"},
	{badge{"frozen", "frozen"}, "grants nothing for a moment, while the service is handed over"},
	{badge{"stopping", "stopping"}, "serves until it has handed over"},
	{badge{"not heard", "gone"}, "is silent for longer than the suspicion time"},
}
