package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/locks"
)

// setenv makes the environment of a test: ours are exactly these, NAME=VALUE.
func setenv(t *testing.T, vars ...string) {
	t.Helper()
	for name := range environment() {
		t.Setenv(name, "") // restores it afterwards
		os.Unsetenv(name)
	}
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

// load is loadSettings of an environment.
func load(t *testing.T, vars ...string) *settings {
	t.Helper()
	setenv(t, vars...)
	return loadSettings()
}

func TestNothingSetIsSound(t *testing.T) {
	s := load(t)
	if len(s.problems) != 0 {
		t.Fatal(s.problems)
	}
	if got, want := s.table(), locks.DefaultConfig(); got != want {
		t.Errorf("the defaults of the table and of the settings differ:\n got %+v\nwant %+v", got, want)
	}
}

// good has a value for each setting that is not its default, as a person would write it and as it is shown.
var good = map[string][2]string{
	"HOLDFAST_NATIVE_ADDR":                 {":7000", ":7000"},
	"HOLDFAST_HTTP_ADDR":                   {"[::]:7001", "[::]:7001"},
	"HOLDFAST_ADVERTISE_NATIVE":            {"lock1.example:7620", "lock1.example:7620"},
	"HOLDFAST_ADVERTISE_HTTP":              {"http://n1:7621, https://localhost:7631/", "http://n1:7621,https://localhost:7631"},
	"HOLDFAST_NODE":                        {"rack-3_a.example", "rack-3_a.example"},
	"HOLDFAST_PEERS":                       {"rack-3_a.example=http://N1.example:7621, n2=https://[fd00::2]:7621/", "rack-3_a.example=http://N1.example:7621,n2=https://[fd00::2]:7621"},
	"HOLDFAST_CLUSTER_SECRET":              {"old-horse-battery,new-horse-battery", masked + "," + masked},
	"HOLDFAST_HEARTBEAT":                   {"500ms", "500ms"},
	"HOLDFAST_SUSPICION":                   {"2s", "2s"},
	"HOLDFAST_START_GRACE":                 {"3s", "3s"},
	"HOLDFAST_TAKEBACK_DELAY":              {"1m", "1m"},
	"HOLDFAST_PREEMPT":                     {"false", "false"},
	"HOLDFAST_REPLICATION":                 {"ack", "ack"},
	"HOLDFAST_HTTP_STANDBY":                {"forward", "forward"},
	"HOLDFAST_UI":                          {"readonly", "readonly"},
	"HOLDFAST_REATTACH_GRACE":              {"1m30s", "1m30s"},
	"HOLDFAST_DATA_DIR":                    {"/var/lib/holdfast", "/var/lib/holdfast"},
	"HOLDFAST_DEFAULT_LEASE":               {"1.5s", "1.5s"},
	"HOLDFAST_MAX_LEASE":                   {"90m", "1h30m"},
	"HOLDFAST_MAX_KEYS":                    {"010", "10"},
	"HOLDFAST_MAX_KEY_BYTES":               {"65536", "64KiB"},
	"HOLDFAST_MAX_WAITERS":                 {"1", "1"},
	"HOLDFAST_MAX_WAITERS_PER_KEY":         {"1000000000", "1000000000"},
	"HOLDFAST_MAX_CONNECTIONS":             {"7", "7"},
	"HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS": {"5", "5"},
	"HOLDFAST_MAX_PENDING":                 {"100", "100"},
	"HOLDFAST_OUTPUT_LIMIT":                {"2MiB", "2MiB"},
	"HOLDFAST_KEEPALIVE":                   {"1s", "1s"},
	"HOLDFAST_AUTH_TOKEN":                  {"correct-horse-battery", masked},
	"HOLDFAST_ALLOWED_HOSTS":               {"locks.example, *", "locks.example,*"},
	"HOLDFAST_TRUSTED_ORIGINS":             {"https://Ops.example:8443", "https://ops.example:8443"},
	"HOLDFAST_TRUSTED_PROXIES":             {"10.1.2.3/8,::1", "10.0.0.0/8,::1/128"},
	"HOLDFAST_LOG_LEVEL":                   {"debug", "debug"},
	"HOLDFAST_LOG_FORMAT":                  {"json", "json"},
	"HOLDFAST_STOP_TIMEOUT":                {"1h", "1h"},
	"HOLDFAST_DRAIN_DELAY":                 {"250ms", "250ms"},
}

func TestEverySettingIsRead(t *testing.T) {
	var vars []string
	for name, value := range good {
		vars = append(vars, name+"="+value[0])
	}
	s := load(t, vars...)
	if len(s.problems) != 0 {
		t.Fatal(s.problems)
	}
	for _, one := range s.all {
		want, ok := good[one.name]
		if !ok {
			t.Errorf("%s has no example in this test", one.name)
			continue
		}
		if got := one.shown(); got != want[1] || one.source != "environment" {
			t.Errorf("%s: got %s from %s, want %s from the environment", one.name, got, one.source, want[1])
		}
	}
}

// C-82 and C-83: what each setting says to what a person may write into it. "ok" accepts the text as it is; anything else
// is part of the one problem reported, which starts with the variable's name.
var hostile = []struct {
	kinds []string // names without prefix
	text  string
	want  string
}{
	{spans, "garbage", `"garbage" is not a duration such as 250ms, 30s or 1h30m; allowed: `},
	{spans, "5", `"5" is not a duration such as 250ms, 30s or 1h30m; allowed: `},
	{spans, "-5s", `"-5s" is out of range; allowed: `},
	{spans, "9999h", `"9999h" is out of range; allowed: `},
	{spans, "99999999999h", `"99999999999h" is not a duration`},
	{spans, " 5s", `has blanks around its value`},
	{spans, "5 s", `"5 s" is not a duration`},
	{spans, "NaNs", `"NaNs" is not a duration`},
	{spans, "   ", `has blanks around its value`},
	{positiveSpans, "0", `"0" is out of range; allowed: `},
	{positiveSpans, "0s", `"0s" is out of range; allowed: `},
	{[]string{"REATTACH_GRACE", "DRAIN_DELAY", "TAKEBACK_DELAY"}, "0", "ok"},

	{counts, "many", `"many" is not a whole number; allowed: `},
	{counts, "1.5", `"1.5" is not a whole number; allowed: `},
	{counts, "1e3", `"1e3" is not a whole number; allowed: `},
	{counts, "0x10", `"0x10" is not a whole number; allowed: `},
	{counts, "1_000", `"1_000" is not a whole number; allowed: `},
	{counts, "+1", `"+1" is not a whole number; allowed: `},
	{counts, "-1", `"-1" is out of range; allowed: `},
	{counts, "1000000001", `"1000000001" is out of range; allowed: `},
	{counts, "99999999999999999999", `"99999999999999999999" is out of range; allowed: `},
	{counts, "-99999999999999999999", `"-99999999999999999999" is out of range; allowed: `},
	{counts, "10 ", `has blanks around its value`},
	{positiveCounts, "0", `"0" is out of range; allowed: 1 to `},
	{[]string{"MAX_CONNECTIONS_PER_ADDRESS"}, "0", "ok"},

	{sizes, "big", `"big" is not a number of bytes such as 65536, 512KiB or 1GiB; allowed: `},
	{sizes, "1GB", `"1GB" is not a number of bytes`},
	{sizes, "1.5GiB", `"1.5GiB" is not a number of bytes`},
	{sizes, "GiB", `"GiB" is not a number of bytes`},
	{sizes, "1 GiB", `"1 GiB" is not a number of bytes`},
	{sizes, "-1GiB", `"-1GiB" is out of range; allowed: `},
	{sizes, "0", `"0" is out of range; allowed: `},
	{sizes, "9223372036854775807TiB", `"9223372036854775807TiB" is out of range; allowed: `},
	{sizes, "1GiB\t", `has blanks around its value`},

	{listens, "7620", `"7620" is not HOST:PORT (an IPv6 address needs brackets); allowed: HOST:PORT`},
	{listens, "::1:7620", `"::1:7620" is not HOST:PORT`},
	{listens, "localhost:", `"localhost:" has no port from 0 to 65535`},
	{listens, "localhost:http", `"localhost:http" has no port from 0 to 65535`},
	{listens, "localhost:65536", `"localhost:65536" has no port from 0 to 65535`},
	{listens, "localhost:-1", `"localhost:-1" has no port from 0 to 65535`},
	{listens, "a b:7620", `"a b:7620" has a host that is neither an IP address nor a name`},
	{listens, "http://localhost:7620", `is not HOST:PORT`},
	{listens, "localhost:7620 ", `has blanks around its value`},
	{listens, "localhost:0", "ok"},
	{listens, "[fe80::1%eth0]:7630", "ok"},

	{[]string{"ADVERTISE_NATIVE"}, "0.0.0.0:7620", `"0.0.0.0:7620" is no address that a client can go to; allowed: HOST:PORT, not 0.0.0.0 or [::]`},
	{[]string{"ADVERTISE_NATIVE"}, ":7620", `":7620" is no address that a client can go to`},
	{[]string{"ADVERTISE_NATIVE"}, "n1:0", `"n1:0" is no address that a client can go to`},
	{[]string{"ADVERTISE_NATIVE"}, "n1", `"n1" is not HOST:PORT`},
	{[]string{"ADVERTISE_HTTP"}, "http://0.0.0.0:7621", `names "http://0.0.0.0:7621", to which no client can go`},
	{[]string{"ADVERTISE_HTTP"}, "http://n1:7621,http://[::]:7621", `names "http://[::]:7621", to which no client can go`},
	{urls, "n1:7621", `has "n1:7621", which is not http://HOST or https://HOST`},
	{urls, "ftp://n1", `has "ftp://n1", which is not http://HOST or https://HOST`},
	{urls, "http://", `has "http://", which is not http://HOST or https://HOST`},
	{urls, "http://n1/path", `has "http://n1/path", with more than scheme, host and port`},
	{urls, "http://me@n1", `has "http://me@n1", with more than scheme, host and port`},
	{urls, "http://n1,,http://n2", `has "", which is not http://HOST or https://HOST`},
	{urls, ",", `has "", which is not http://HOST`},

	{[]string{"NODE"}, "a b", `"a b" is no name for a node; allowed: 1 to 63 letters, digits, dots, hyphens, underscores`},
	{[]string{"NODE"}, "n=1", `"n=1" is no name for a node`},
	{[]string{"NODE"}, "naïve", `"naïve" is no name for a node`},
	{[]string{"NODE"}, strings.Repeat("n", 64), `is no name for a node`},
	{[]string{"NODE"}, strings.Repeat("n", 63), "ok"},

	{[]string{"PEERS"}, "n1", `"n1" has "n1", which is not NAME=http://HOST:PORT; allowed: 1 to 8 entries NAME=http://HOST:PORT separated by commas`},
	{[]string{"PEERS"}, "n1=http://a:1,", `has "", which is not NAME=http://HOST:PORT`},
	{[]string{"PEERS"}, "=http://a:1", `has "=http://a:1", whose name is none for a node`},
	{[]string{"PEERS"}, "n 1=http://a:1", `has "n 1=http://a:1", whose name is none for a node`},
	{[]string{"PEERS"}, "n1=a:1", `has "a:1", which is not http://HOST or https://HOST`},
	{[]string{"PEERS"}, "n1=http://a:1/path", `has "http://a:1/path", with more than scheme, host and port`},
	{[]string{"PEERS"}, "n1=http://a", `has "n1=http://a", without a port from 1 to 65535`},
	{[]string{"PEERS"}, "n1=http://a:0", `has "n1=http://a:0", without a port from 1 to 65535`},
	{[]string{"PEERS"}, "n1=http://0.0.0.0:1", `names "http://0.0.0.0:1", to which no client can go`},
	{[]string{"PEERS"}, "n1=http://[::]:1", `names "http://[::]:1", to which no client can go`},
	{[]string{"PEERS"}, "n1=http://a:1,n1=http://b:1", `names n1 twice`},
	{[]string{"PEERS"}, "n1=http://a:1,n2=http://A:1/", `gives n1 and n2 the same address`},
	{[]string{"PEERS"}, nine, `has 9 entries`},

	{[]string{"CLUSTER_SECRET"}, "short-token", `its value has 11 characters; allowed: 12 to 1024 printable ASCII characters, no blanks`},
	{[]string{"CLUSTER_SECRET"}, "correct-horse-battery,tiny", `its value has a mistake in secret 2 of 2: it has 4 characters; allowed: `},
	{[]string{"CLUSTER_SECRET"}, "correct-horse-battery, other-horse-battery", `its value has a mistake in secret 2 of 2: it has a blank or another character that is not allowed, at position 1`},
	{[]string{"CLUSTER_SECRET"}, "correct-horse-battery,", `its value has a mistake in secret 2 of 2: it has 0 characters`},
	{[]string{"CLUSTER_SECRET"}, "aaaaaaaaaaaa,bbbbbbbbbbbb,cccccccccccc", `its value holds 3 secrets`},
	{[]string{"CLUSTER_SECRET"}, "aaaaaaaaaaaa,aaaaaaaaaaaa", `its value holds the same secret twice`},

	{[]string{"PREEMPT"}, "no", `"no" is none of the words; allowed: true, false`},
	{[]string{"REPLICATION"}, "sync", `"sync" is none of the words; allowed: async, ack`},
	{[]string{"HTTP_STANDBY"}, "proxy", `"proxy" is none of the words; allowed: redirect, forward`},
	{[]string{"UI"}, "on", `"on" is none of the words; allowed: full, readonly, off`},

	{[]string{"AUTH_TOKEN"}, "short-token", `its value has 11 characters; allowed: 12 to 1024 printable ASCII characters, no blanks`},
	{[]string{"AUTH_TOKEN"}, strings.Repeat("x", 1025), `its value has 1025 characters`},
	{[]string{"AUTH_TOKEN"}, "correct horse battery", `its value has a blank or another character that is not allowed, at position 8`},
	{[]string{"AUTH_TOKEN"}, "correct-hörse-battery", `its value has a blank or another character that is not allowed, at position 10`},
	{[]string{"AUTH_TOKEN"}, " correct-horse-battery", `has blanks around its value`},

	{[]string{"ALLOWED_HOSTS"}, "a,b:7621", `has "b:7621", which is no host name`},
	{[]string{"ALLOWED_HOSTS"}, "*.example", `has "*.example", which is no host name`},
	{[]string{"ALLOWED_HOSTS"}, "a,", `has "", which is no host name`},
	{[]string{"TRUSTED_PROXIES"}, "proxy", `has "proxy", which is neither an IP address nor a CIDR range`},
	{[]string{"TRUSTED_PROXIES"}, "10.0.0.0/33", `has "10.0.0.0/33", which is neither an IP address nor a CIDR range`},

	{[]string{"LOG_LEVEL"}, "verbose", `"verbose" is none of the words; allowed: debug, info, warn, error`},
	{[]string{"LOG_LEVEL"}, "INFO", `"INFO" is none of the words`},
	{[]string{"LOG_LEVEL"}, "0", `"0" is none of the words`},
	{[]string{"LOG_FORMAT"}, "xml", `"xml" is none of the words; allowed: text, json`},
	{[]string{"LOG_FORMAT"}, "text, json", `"text, json" is none of the words`},
}

// nine is a list of one node too many.
var nine = "a=http://a:1,b=http://b:1,c=http://c:1,d=http://d:1,e=http://e:1,f=http://f:1,g=http://g:1,h=http://h:1,i=http://i:1"

var (
	positiveSpans  = []string{"DEFAULT_LEASE", "MAX_LEASE", "KEEPALIVE", "STOP_TIMEOUT", "HEARTBEAT", "SUSPICION", "START_GRACE"}
	spans          = append(slices.Clone(positiveSpans), "REATTACH_GRACE", "DRAIN_DELAY", "TAKEBACK_DELAY")
	positiveCounts = []string{"MAX_KEYS", "MAX_WAITERS", "MAX_WAITERS_PER_KEY", "MAX_CONNECTIONS", "MAX_PENDING"}
	counts         = append(slices.Clone(positiveCounts), "MAX_CONNECTIONS_PER_ADDRESS")
	sizes          = []string{"MAX_KEY_BYTES", "OUTPUT_LIMIT"}
	listens        = []string{"NATIVE_ADDR", "HTTP_ADDR"}
	urls           = []string{"ADVERTISE_HTTP", "TRUSTED_ORIGINS"}
)

func TestHostileValues(t *testing.T) {
	tried := map[string]bool{}
	for _, c := range hostile {
		for _, kind := range c.kinds {
			name := "HOLDFAST_" + kind
			tried[name] = true
			t.Run(fmt.Sprintf("%s=%.40q", name, c.text), func(t *testing.T) {
				s := load(t, name+"="+c.text)
				if c.want == "ok" {
					if len(s.problems) != 0 {
						t.Errorf("refused: %q", s.problems)
					}
					return
				}
				if len(s.problems) != 1 || !strings.HasPrefix(s.problems[0], name+": ") || !strings.Contains(s.problems[0], c.want) {
					t.Errorf("got %q, want one problem of %s with %q", s.problems, name, c.want)
				}
			})
		}
	}
	for _, one := range load(t).all {
		if !tried[one.name] && one.name != "HOLDFAST_DATA_DIR" { // any text is a path
			t.Errorf("%s: no hostile value is tried", one.name)
		}
	}
}

// C-82: empty is unset, for every setting.
func TestEmptyIsUnset(t *testing.T) {
	plain := load(t)
	var vars []string
	for name := range good {
		vars = append(vars, name+"=", name+"_FILE=")
	}
	for name := range later {
		vars = append(vars, name+"=")
	}
	s := load(t, append(vars, "HOLDFAST_NONSENSE=")...)
	if len(s.problems) != 0 || !reflect.DeepEqual(s.config, plain.config) {
		t.Errorf("problems %q, config\n%+v\nwant\n%+v", s.problems, s.config, plain.config)
	}
}

// C-83: a zero that is accepted is the zero that counts.
func TestZeroIsHonoured(t *testing.T) {
	s := load(t, "HOLDFAST_REATTACH_GRACE=0", "HOLDFAST_DRAIN_DELAY=0", "HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS=0")
	if len(s.problems) != 0 || s.ReattachGrace != 0 || s.DrainDelay != 0 || s.MaxConnectionsPerAddress != 0 {
		t.Errorf("problems %q, config %+v", s.problems, s.config)
	}
	if s.table().ReattachGrace != 0 {
		t.Error("the table was given another grace than 0")
	}
}

// C-82: a name that nobody reads is refused, with the one that was meant.
func TestUnknownNames(t *testing.T) {
	for name, want := range map[string]string{
		"HOLDFAST_MAX_KEY":           "HOLDFAST_MAX_KEYS",
		"HOLDFAST_NATIV_ADDR":        "HOLDFAST_NATIVE_ADDR",
		"HOLDFAST_LOGLEVEL":          "HOLDFAST_LOG_LEVEL",
		"HOLDFAST_TOKEN":             "HOLDFAST_NODE",
		"HOLDFAST_AUTH_TOKN_FILE":    "HOLDFAST_AUTH_TOKEN_FILE",
		"HOLDFAST_MAX_KEYS_FILE":     "HOLDFAST_MAX_KEYS",
		"HOLDFAST_DEFAULT_LEASES":    "HOLDFAST_DEFAULT_LEASE",
		"HOLDFAST_data_dir":          "HOLDFAST_DATA_DIR",
		"HOLDFAST_TRUSTED_PROXY":     "HOLDFAST_TRUSTED_PROXIES",
		"HOLDFAST_MAX_CONNECTION":    "HOLDFAST_MAX_CONNECTIONS",
		"HOLDFAST_STOPP_TIMEOUT":     "HOLDFAST_STOP_TIMEOUT",
		"HOLDFAST_LISTEN_HTTP_ADDR":  "HOLDFAST_HTTP_ADDR",
		"HOLDFAST_ADVERTISE_NATIVES": "HOLDFAST_ADVERTISE_NATIVE",
	} {
		t.Run(name, func(t *testing.T) {
			got := load(t, name+"=something").problems
			want := name + ": there is no such setting; did you mean " + want + "?"
			if len(got) != 1 || got[0] != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestNamesOfOthersAreLeftAlone(t *testing.T) {
	s := load(t,
		// What Kubernetes sets for the services "holdfast" and "holdfast-http".
		"HOLDFAST_SERVICE_HOST=10.0.0.1", "HOLDFAST_SERVICE_PORT=7620", "HOLDFAST_SERVICE_PORT_NATIVE=7620",
		"HOLDFAST_PORT=tcp://10.0.0.1:7620", "HOLDFAST_PORT_7620_TCP=tcp://10.0.0.1:7620", "HOLDFAST_PORT_7620_TCP_ADDR=10.0.0.1",
		"HOLDFAST_HTTP_SERVICE_HOST=10.0.0.1", "HOLDFAST_HTTP_PORT_7621_TCP_PROTO=tcp",
		// The command line's.
		"HOLDFAST_ADDRS=127.0.0.1:7620", "HOLDFAST_HTTP_ADDRS=http://127.0.0.1:7621", "HOLDFAST_KEY=job", "HOLDFAST_FENCING_TOKEN=8",
		// And no prefix of ours.
		"HOLDFASTER=1", "HOLDFAST=1",
	)
	if len(s.problems) != 0 {
		t.Errorf("problems %q", s.problems)
	}
}

func TestLaterSettingsAreRefused(t *testing.T) {
	for name, why := range later {
		if got := load(t, name+"=x").problems; len(got) != 1 || got[0] != name+": "+why {
			t.Errorf("%s: got %q, want %q", name, got, why)
		}
	}
	if got := load(t, "HOLDFAST_JOURNAL=off").problems; len(got) != 0 {
		t.Errorf("switched off, yet %q", got)
	}
}

func TestRelations(t *testing.T) {
	for _, c := range []struct {
		vars []string
		want []string
	}{
		{[]string{"HOLDFAST_DEFAULT_LEASE=2m", "HOLDFAST_MAX_LEASE=1m"}, []string{"HOLDFAST_DEFAULT_LEASE: 2m is longer than HOLDFAST_MAX_LEASE (1m)"}},
		{[]string{"HOLDFAST_MAX_LEASE=10s"}, []string{"HOLDFAST_DEFAULT_LEASE: 30s is longer than HOLDFAST_MAX_LEASE (10s)"}},
		{[]string{"HOLDFAST_DEFAULT_LEASE=1m", "HOLDFAST_MAX_LEASE=1m"}, nil},
		{[]string{"HOLDFAST_DRAIN_DELAY=15s"}, []string{"HOLDFAST_DRAIN_DELAY: 15s leaves nothing of HOLDFAST_STOP_TIMEOUT (15s) to stop in"}},
		{[]string{"HOLDFAST_NATIVE_ADDR=:7700", "HOLDFAST_HTTP_ADDR=127.0.0.1:7700"}, []string{"HOLDFAST_HTTP_ADDR: 127.0.0.1:7700 is taken by HOLDFAST_NATIVE_ADDR (:7700)"}},
		{[]string{"HOLDFAST_NATIVE_ADDR=127.0.0.2:7700", "HOLDFAST_HTTP_ADDR=127.0.0.1:7700"}, nil},
		{[]string{"HOLDFAST_NATIVE_ADDR=127.0.0.1:0", "HOLDFAST_HTTP_ADDR=127.0.0.1:0"}, nil},
		// A setting that has a problem of its own is not compared with others.
		{[]string{"HOLDFAST_DEFAULT_LEASE=2m", "HOLDFAST_MAX_LEASE=soon"}, []string{`HOLDFAST_MAX_LEASE: "soon" is not a duration such as 250ms, 30s or 1h30m; allowed: 1ms to 1193h`}},
	} {
		if got := load(t, c.vars...).problems; !slices.Equal(got, c.want) {
			t.Errorf("%q: got %q, want %q", c.vars, got, c.want)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	got := load(t, "HOLDFAST_MAX_KEYS=0", "HOLDFAST_LOG_LEVEL=loud", "HOLDFAST_TLS_CA=x", "HOLDFAST_NOD=n1", "HOLDFAST_DRAIN_DELAY=1h").problems
	want := []string{
		"HOLDFAST_NOD: there is no such setting; did you mean HOLDFAST_NODE?",
		"HOLDFAST_TLS_CA: TLS is not part of this version",
		`HOLDFAST_MAX_KEYS: "0" is out of range; allowed: 1 to 1000000000`,
		`HOLDFAST_LOG_LEVEL: "loud" is none of the words; allowed: debug, info, warn, error`,
		"HOLDFAST_DRAIN_DELAY: 1h leaves nothing of HOLDFAST_STOP_TIMEOUT (15s) to stop in",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSecretFromFile(t *testing.T) {
	const token = "correct-horse-battery"
	file := filepath.Join(t.TempDir(), "token")
	set := "HOLDFAST_AUTH_TOKEN_FILE=" + file
	for name, c := range map[string]struct{ content, want string }{
		"plain":          {token, ""},
		"newline":        {token + "\n", ""},
		"Windows":        {token + "\r\n", ""},
		"two newlines":   {token + "\n\n", "HOLDFAST_AUTH_TOKEN: in " + file + ": its value has a blank or another character that is not allowed, at position 22; allowed: 12 to 1024 printable ASCII characters, no blanks"},
		"leading blank":  {" " + token, "HOLDFAST_AUTH_TOKEN: in " + file + ": its value has a blank or another character that is not allowed, at position 1; allowed: 12 to 1024 printable ASCII characters, no blanks"},
		"short":          {"tiny\n", "HOLDFAST_AUTH_TOKEN: in " + file + ": its value has 4 characters; allowed: 12 to 1024 printable ASCII characters, no blanks"},
		"empty":          {"", "HOLDFAST_AUTH_TOKEN: read HOLDFAST_AUTH_TOKEN_FILE: " + file + " is empty"},
		"only a newline": {"\n", "HOLDFAST_AUTH_TOKEN: read HOLDFAST_AUTH_TOKEN_FILE: " + file + " is empty"},
		"huge":           {strings.Repeat("x", 5000), "HOLDFAST_AUTH_TOKEN: read HOLDFAST_AUTH_TOKEN_FILE: " + file + " is not a file of at most 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			s := load(t, set)
			if c.want != "" {
				if len(s.problems) != 1 || s.problems[0] != c.want {
					t.Errorf("got %q, want %q", s.problems, c.want)
				}
				return
			}
			if len(s.problems) != 0 || string(s.AuthToken) != token {
				t.Errorf("problems %q, token of %d characters", s.problems, len(s.AuthToken))
			}
		})
	}

	missing := load(t, set+".missing").problems
	want := "HOLDFAST_AUTH_TOKEN: read HOLDFAST_AUTH_TOKEN_FILE: stat " + file + ".missing: no such file or directory"
	if len(missing) != 1 || missing[0] != want {
		t.Errorf("got %q, want %q", missing, want)
	}
	directory := load(t, "HOLDFAST_AUTH_TOKEN_FILE="+filepath.Dir(file)).problems
	if len(directory) != 1 || !strings.HasSuffix(directory[0], " is not a file of at most 4096 bytes") {
		t.Errorf("a directory: got %q", directory)
	}
	both := load(t, set, "HOLDFAST_AUTH_TOKEN="+token).problems
	want = "HOLDFAST_AUTH_TOKEN: set together with HOLDFAST_AUTH_TOKEN_FILE: which of the two counts?"
	if len(both) != 1 || both[0] != want {
		t.Errorf("got %q, want %q", both, want)
	}
}

func TestLevelFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "level")
	if err := os.WriteFile(file, []byte("warn\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s := load(t, "HOLDFAST_LOG_LEVEL_FILE="+file); len(s.problems) != 0 || s.LogLevel != "warn" {
		t.Errorf("problems %q, level %s", s.problems, s.LogLevel)
	}
	if err := os.WriteFile(file, []byte("loud\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "HOLDFAST_LOG_LEVEL: in " + file + `: "loud" is none of the words; allowed: debug, info, warn, error`
	if s := load(t, "HOLDFAST_LOG_LEVEL_FILE="+file); len(s.problems) != 1 || s.problems[0] != want {
		t.Errorf("got %q, want %q", s.problems, want)
	}
}

// A secret is told to nobody, whatever is wrong and however it is printed.
func TestSecretsStaySecret(t *testing.T) {
	for _, token := range []string{"hunter2", "hunter2 with blanks", "hunter2-hunter2-hunter2", "hunter2\x01hunter2"} {
		s := load(t, "HOLDFAST_AUTH_TOKEN="+token, "HOLDFAST_CLUSTER_SECRET="+token+",other-"+token)
		var out strings.Builder
		s.printSettings(&out)
		s.printProblems(&out)
		fmt.Fprintf(&out, "%v %+v %#v %s %s", s.config, s.config, s.config, s.AuthToken, s.ClusterSecret)
		if strings.Contains(out.String(), "hunter2") {
			t.Errorf("token %q shows in\n%s", token, out.String())
		}
	}
}

func TestDerivedDefaults(t *testing.T) {
	for _, c := range []struct {
		vars         []string
		native, http string
	}{
		{nil, "127.0.0.1:7620", "[http://127.0.0.1:7621]"},
		{[]string{"HOLDFAST_NATIVE_ADDR=:7620", "HOLDFAST_HTTP_ADDR=0.0.0.0:7621"}, "", "[]"},
		{[]string{"HOLDFAST_NATIVE_ADDR=[::]:7620", "HOLDFAST_HTTP_ADDR=localhost:0"}, "", "[]"},
		{[]string{"HOLDFAST_NATIVE_ADDR=:7620", "HOLDFAST_ADVERTISE_NATIVE=n1:1"}, "n1:1", "[http://127.0.0.1:7621]"},
	} {
		s := load(t, c.vars...)
		if len(s.problems) != 0 || string(s.AdvertiseNative) != c.native || fmt.Sprint(s.AdvertiseHTTP) != c.http {
			t.Errorf("%q: problems %q, advertised %q and %s; want %q and %s", c.vars, s.problems, s.AdvertiseNative, s.AdvertiseHTTP, c.native, c.http)
		}
	}
	host, err := os.Hostname()
	if s := load(t); err != nil || string(s.Node) != host {
		t.Errorf("node %q, want the host name %q (%v)", s.Node, host, err)
	}
}

func TestSpanIsShownShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", 90 * time.Second: "1m30s", time.Minute: "1m", time.Hour: "1h", 25 * time.Hour: "25h",
		time.Hour + time.Minute: "1h1m", time.Hour + time.Second: "1h0m1s", 20 * time.Minute: "20m", 250 * time.Millisecond: "250ms", 10 * time.Hour: "10h",
	} {
		if got := span(d).String(); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
