package link

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/replica"
)

// Dials that fail come again, each after a pause of its own within the bounds.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 0, 2)
		time.Sleep(time.Minute)
		net.mu.Lock()
		defer net.mu.Unlock()
		if n := len(net.dials); n < 60_000/300 || n > 60_000/100 {
			t.Errorf("%d dials in a minute", n)
		}
		different := map[time.Duration]bool{}
		for i := 1; i < len(net.dials); i++ {
			pause := net.dials[i].Sub(net.dials[i-1])
			if pause < minRedial || pause > maxRedial || i == 1 && pause > 100*time.Millisecond {
				t.Errorf("pause %d was %v", i, pause)
			}
			different[pause] = true
		}
		if len(different) < len(net.dials)/2 {
			t.Errorf("%d different pauses of %d", len(different), len(net.dials))
		}
		for _, told := range x.owner.take() {
			if told != "dial 1 refused" {
				t.Errorf("told %q", told)
			}
		}
	})
}

// A process that is being killed may take a last connection into its backlog:
// that must not keep its death from being noticed.
func TestDialThatIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		net.cut[addr(1)] = 2
		x := net.start(t, 0, 2)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		x.owner.want(t, "dial 1 failed", "dial 1 failed", "dial 1 refused")
		net.mu.Lock()
		net.cut[addr(1)] = 1000
		net.mu.Unlock()
		time.Sleep(time.Minute)
		if n := net.dialled(addr(1)); n > 60_000/50*2 {
			t.Errorf("%d dials in a minute of an address that cuts every connection", n)
		}
	})
}

// An address that is silent is no dead process.
func TestSilentAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		net.silent[addr(1)] = true
		x := net.start(t, 0, 2)
		time.Sleep(300*time.Millisecond - time.Nanosecond)
		synctest.Wait()
		x.owner.want(t)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		x.owner.want(t, "dial 1 failed")
	})
}

// Redial dials now, but not again within the shortest pause: a peer that
// refuses each link once it is up must not be dialled without end.
func TestRedial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 0, 2)
		time.Sleep(10 * time.Second)
		x.owner.take()
		before := net.dialled(addr(1))
		begin := time.Now()
		for range 1000 {
			x.tr.Push(replica.Redial{Peer: 1})
			time.Sleep(time.Millisecond)
		}
		if n := net.dialled(addr(1)) - before; n < 19 || n > 21 {
			t.Errorf("%d dials in %v of Redial", n, time.Since(begin))
		}
		time.Sleep(2 * minRedial)
		before = net.dialled(addr(1))
		x.tr.Push(replica.Redial{Peer: 1})
		synctest.Wait()
		if n := net.dialled(addr(1)) - before; n != 1 {
			t.Errorf("%d dials at once, want 1", n)
		}
	})
}

// The machine's answer to a link that goes down is a Redial: it happens at once.
func TestRedialAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		a := net.start(t, 0, 2)
		a.owner.then(func(in replica.Input) {
			if _, ok := in.(replica.LinkDown); ok {
				a.tr.Push(replica.Redial{Peer: 1})
			}
		})
		time.Sleep(time.Minute)
		a.owner.want(t, "up 1 dialled")
		b.kill()
		synctest.Wait()
		a.owner.want(t, "down 1", "dial 1 refused")
	})
}

// A Redial that comes while a second link to the peer stands is done when that
// one is gone: where a process dies with both, the machine asks once.
func TestRedialAfterTwoLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		a := net.start(t, 0, 2)
		g := net.visit(t, addr(0), "n1", "n0")
		time.Sleep(time.Minute)
		a.owner.want(t, "up 1 dialled", "up 2 accepted")
		b.kill()
		synctest.Wait()
		a.tr.Push(replica.Redial{Peer: 1})
		synctest.Wait()
		a.owner.want(t, "down 1")
		g.raw.Close()
		synctest.Wait()
		a.owner.want(t, "down 2", "dial 1 refused")
	})
}

// One that ends soon after it began is followed by longer and longer pauses; a
// steady one lets the next dials come quickly again.
func TestBackoffAfterLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		b.owner.then(func(in replica.Input) {
			if up, ok := in.(replica.LinkUp); ok {
				b.tr.Push(replica.CloseLink{Link: up.Link, Why: "other order of the peers list"})
			}
		})
		a := net.start(t, 0, 2)
		time.Sleep(time.Minute)
		if n := net.dialled(addr(1)); n > 60_000/100 {
			t.Errorf("%d dials in a minute", n)
		}
		b.owner.then(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if tries := a.tr.peers[1].tries.Load(); tries < 4 {
			t.Errorf("%d tries are counted", tries)
		}
		b.stop()
		synctest.Wait()
		if tries := a.tr.peers[1].tries.Load(); tries > 1 {
			t.Errorf("%d tries are counted after a steady link", tries)
		}
	})
}

// Of a name with several addresses only all of them together are refused.
func TestDialTCPAddresses(t *testing.T) {
	dead := refusedAddr(t)
	_, port, _ := net.SplitHostPort(dead)
	if _, err := dialTCP(t.Context(), net.JoinHostPort("localhost", port)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a name whose every address refuses: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dialTCP(ctx, dead); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a dial without time: %v", err)
	}
	for _, bad := range []string{"n1", "no such host.invalid:1", "127.0.0.1:99999"} {
		if _, err := dialTCP(t.Context(), bad); err == nil || errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// refusedAddr is an address where nobody listens.
func refusedAddr(t testing.TB) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestValidate(t *testing.T) {
	good := func() Config {
		return Config{Peers: list(2), Secrets: func() []string { return nil }, Timeout: time.Second}
	}
	for _, tt := range []struct {
		name  string
		spoil func(*Config)
		want  []string
	}{
		{"good", func(*Config) {}, nil},
		{"own address missing", func(c *Config) { c.Peers[0].URL = "" }, nil},
		{"a path", func(c *Config) { c.Peers[1].URL = "https://n1/holdfast/" }, nil},
		{"nobody", func(c *Config) { c.Peers = nil }, []string{"has 0 nodes", "rank 0"}},
		{"too many", func(c *Config) { c.Peers = list(9) }, []string{"has 9 nodes; give 1 to 8"}},
		{"rank", func(c *Config) { c.Rank = -1 }, []string{"rank -1"}},
		{"all at once", func(c *Config) { *c = Config{Rank: 1, Peers: []Peer{{}, {}}} },
			[]string{"name of 0 bytes", "give http://host:port", "cluster secret: required", "suspicion time 0s"}},
		{"scheme", func(c *Config) { c.Peers[1].URL = "ws://n1" }, []string{`node "n1": address "ws://n1": give http://`}},
		{"no host", func(c *Config) { c.Peers[1].URL = "http://:7621" }, []string{"give http://"}},
		{"password", func(c *Config) { c.Peers[1].URL = "http://me:hidden@n1" }, []string{"give no user"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good()
			tt.spoil(&cfg)
			err := cfg.Validate()
			if (err == nil) != (tt.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %q, want %q in it", err, w)
				}
			}
			if err != nil && strings.Contains(err.Error(), "hidden") {
				t.Errorf("a password is in %q", err)
			}
		})
	}
}

func TestParseAddress(t *testing.T) {
	for s, want := range map[string]address{
		"http://10.0.0.1:7621": {url: "http://10.0.0.1:7621" + Path, dial: "10.0.0.1:7621", host: "10.0.0.1"},
		"http://[::1]:7621":    {url: "http://[::1]:7621" + Path, dial: "[::1]:7621", host: "::1"},
		"https://n1":           {url: "https://n1" + Path, dial: "n1:443", host: "n1", secure: true},
		"http://n1/x/":         {url: "http://n1/x" + Path, dial: "n1:80", host: "n1"},
	} {
		if got, err := parseAddress(s); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", s, got, err)
		}
	}
}
