package replica

import "testing"

// TestSimulationCanFail breaks one rule at a time. Within gives the number of
// seeds in which the simulation must notice.
func TestSimulationCanFail(t *testing.T) {
	for _, c := range []struct {
		broken sabotage
		name   string
		within uint64
	}{
		{reuseTokens, "a reign starts below the tokens heard of", 100},
		{promoteBehind, "promote without catching up", 100},
		{dropLosersTable, "drop the loser's table", 100},
		{forgetInheritedRelease, "forget an inherited release", 100},
		{forgetOwnRelease, "merge what was released here", 100},
		{serveAfterActivate, "serve after activate", 100},
		{ignoreFreeze, "serve while frozen", 100},
		{ignoreWaking, "serve before asking after a pause", 100},
		{trimTooEarly, "empty the ended set too early", 100},
		{openGateAtOnce, "answer before a standby has acknowledged", 100},
		{loseParked, "forget what was parked", 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := uint64(1); seed <= c.within; seed++ {
				h := newHistory(seed, c.broken)
				if fault := h.run(); fault != "" {
					t.Logf("seed %d (%s): %s", seed, h.profile, fault)
					return
				}
			}
			t.Errorf("not noticed in %d histories", c.within)
		})
	}
}
