//go:build linux

package cluster

import (
	"strings"
	"testing"
	"time"
)

// Each promise must be able to break: a history that breaks one is found out, and the same one with the fault declared
// that excuses it is not.
func TestChecker(t *testing.T) {
	const lease = time.Hour
	hold := func(token uint64, asked, granted, ended instant) *attempt {
		return &attempt{client: "c", key: "k", token: token, lease: lease, ticket: true, asked: asked, granted: granted, ended: ended}
	}
	queued := func(a *attempt, read instant) *attempt { a.read = read; return a }
	short := func(a *attempt) *attempt { a.lease = 5; return a }
	during := func(kind faultKind) []fault { return []fault{{kind, 10, 20}} }
	says := func(token uint64, release, holds bool, asked, answered instant) verdict {
		return verdict{key: "k", token: token, release: release, holds: holds, lease: lease, asked: asked, answered: answered}
	}
	again := func(v verdict) verdict { v.repeated = true; return v }
	for name, c := range map[string]struct {
		attempts []*attempt
		verdicts []verdict
		faults   []fault
		want     string // "" = nothing is found
	}{
		"nothing":              {},
		"one after the other":  {attempts: []*attempt{hold(8, 1, 2, 3), hold(16, 1, 4, 5), hold(24, 6, 7, 0)}},
		"token twice":          {attempts: []*attempt{hold(8, 1, 2, 3), hold(8, 4, 5, 6)}, want: "issued twice"},
		"token twice, split":   {attempts: []*attempt{hold(8, 11, 12, 13), hold(8, 14, 15, 16)}, faults: during(split), want: "issued twice"},
		"token goes back":      {attempts: []*attempt{hold(16, 1, 2, 3), hold(8, 4, 5, 6)}, want: "out of order"},
		"goes back in a crash": {attempts: []*attempt{hold(16, 11, 12, 13), hold(8, 14, 15, 16)}, faults: during(crash), want: "out of order"},
		"goes back, split":     {attempts: []*attempt{hold(16, 11, 12, 13), hold(8, 14, 15, 16)}, faults: during(split)},
		"asked at once":        {attempts: []*attempt{hold(16, 1, 2, 3), hold(8, 1, 4, 5)}},
		"passed over":          {attempts: []*attempt{queued(hold(16, 1, 9, 10), 3), hold(8, 4, 5, 6)}, want: "out of order"},
		"place lost":           {attempts: []*attempt{queued(hold(16, 1, 29, 30), 15), hold(8, 21, 25, 26)}, faults: during(crash)},
		"place lost too late":  {attempts: []*attempt{queued(hold(16, 1, 29, 30), 5), hold(8, 21, 25, 26)}, faults: during(crash), want: "out of order"},
		"parked":               {attempts: []*attempt{queued(hold(16, 1, 29, 30), 15), hold(8, 21, 25, 26)}, faults: during(freeze)},
		"place of an instant":  {attempts: []*attempt{queued(hold(16, 1, 29, 30), 15), hold(8, 21, 25, 26)}, faults: during(place)},
		"two in its instant":   {attempts: []*attempt{hold(8, 10, 11, 15), hold(16, 12, 13, 14)}, faults: during(place), want: "two holders"},
		"lost in its instant":  {attempts: []*attempt{hold(8, 10, 11, 0)}, verdicts: []verdict{says(8, false, false, 15, 16)}, faults: during(place), want: "is lost"},
		"two in a freeze":      {attempts: []*attempt{hold(8, 10, 11, 15), hold(16, 12, 13, 14)}, faults: during(freeze), want: "two holders"},
		"lost in a freeze":     {attempts: []*attempt{hold(8, 10, 11, 0)}, verdicts: []verdict{says(8, false, false, 15, 16)}, faults: during(freeze), want: "is lost"},
		"two holders":          {attempts: []*attempt{hold(8, 1, 2, 6), hold(16, 3, 4, 5)}, want: "two holders"},
		"two, one to the end":  {attempts: []*attempt{hold(8, 1, 2, 0), hold(16, 3, 4, 5)}, want: "two holders"},
		"two, one long before": {attempts: []*attempt{hold(8, 1, 2, 20), hold(16, 10, 11, 12), hold(24, 1, 30, 31)}, want: "two holders"},
		"two after a crash":    {attempts: []*attempt{hold(8, 10, 11, 30), hold(16, 21, 22, 23)}, faults: during(crash)},
		"two, before a crash":  {attempts: []*attempt{hold(8, 1, 2, 30), hold(16, 21, 22, 23)}, faults: during(crash), want: "two holders"},
		"lease ran out":        {attempts: []*attempt{short(hold(8, 1, 2, 0)), hold(16, 3, 7, 8)}},
		"held":                 {attempts: []*attempt{hold(8, 1, 2, 9)}, verdicts: []verdict{says(8, false, true, 5, 6), says(8, true, true, 9, 10)}},
		"lost":                 {attempts: []*attempt{hold(8, 1, 2, 0)}, verdicts: []verdict{says(8, false, false, 5, 6)}, want: "is lost"},
		"lost, in a crash":     {attempts: []*attempt{hold(8, 10, 11, 0)}, verdicts: []verdict{says(8, false, false, 25, 26)}, faults: during(crash)},
		"lost, before a crash": {attempts: []*attempt{hold(8, 1, 2, 0)}, verdicts: []verdict{says(8, false, false, 25, 26)}, faults: during(crash), want: "is lost"},
		"lost at its end":      {attempts: []*attempt{short(hold(8, 1, 2, 0))}, verdicts: []verdict{says(8, false, false, 7, 8)}},
		"extended, then lost": {attempts: []*attempt{short(hold(8, 1, 2, 0))},
			verdicts: []verdict{says(8, false, true, 3, 4), says(8, false, false, 30, 31)}, want: "is lost"},
		"released twice":     {attempts: []*attempt{hold(8, 1, 2, 3)}, verdicts: []verdict{says(8, true, true, 3, 4), says(8, true, false, 5, 6)}},
		"comes back":         {attempts: []*attempt{hold(8, 1, 2, 3)}, verdicts: []verdict{says(8, true, true, 3, 4), says(8, false, true, 5, 6)}, want: "is back"},
		"back after a crash": {attempts: []*attempt{hold(8, 1, 2, 11)}, verdicts: []verdict{says(8, true, true, 11, 12), says(8, false, true, 25, 26)}, faults: during(crash)},
		"released, by repeat": {attempts: []*attempt{hold(8, 1, 2, 3)},
			verdicts: []verdict{again(says(8, true, false, 3, 4)), says(8, true, false, 5, 6)}},
		"back after a repeat": {attempts: []*attempt{hold(8, 1, 2, 3)},
			verdicts: []verdict{again(says(8, true, false, 3, 4)), says(8, false, true, 5, 6)}, want: "is back"},
		"lost, by repeat": {attempts: []*attempt{hold(8, 1, 2, 0)}, verdicts: []verdict{again(says(8, false, false, 3, 4))}, want: "is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.attempts, h.verdicts, h.faults = c.attempts, c.verdicts, c.faults
			got := h.findingsLocked()
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("found %q in a good history", got)
			case c.want != "" && (len(got) == 0 || !strings.Contains(got[0], c.want)):
				t.Errorf("found %q, want one with %q", got, c.want)
			}
		})
	}
}
