package link

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// What each side of a pair says to each combination of secrets.
func TestSecrets(t *testing.T) {
	const old, wrong = "the one of last year", "somebody else's one"
	for _, tt := range []struct {
		name string
		a, b []string // of the dialler, of the acceptor
		told string   // the dialler, where there is none; "dial 1 failed" if empty
		logA []string // empty: there is a link
		logB []string
	}{
		{name: "same", a: []string{old}, b: []string{old}},
		{name: "rotation, acceptor knows the new one", a: []string{old}, b: []string{old, secret}},
		{name: "rotation, dialler knows the new one", a: []string{old, secret}, b: []string{old}},
		{name: "rotation, dialler proves with the new one", a: []string{secret, old}, b: []string{old, secret}},
		{name: "rotation, acceptor proves with the new one", a: []string{old, secret}, b: []string{secret, old}},
		{name: "rotation, dialler has dropped the old one", a: []string{secret}, b: []string{secret, old}},
		{name: "rotation, acceptor has dropped the old one", a: []string{secret, old}, b: []string{secret}},
		{name: "wrong", a: []string{wrong}, b: []string{secret}, told: "dial 1 rejected",
			logA: []string{"level=WARN", "refused by the peer", "peer=n1", "401", "does not fit this node's cluster secret"},
			logB: []string{"level=WARN", "peer refused", "peer=n0", "does not fit this node's cluster secret"}},
		{name: "old after the rotation", a: []string{old}, b: []string{secret}, told: "dial 1 rejected",
			logA: []string{"refused by the peer", "peer=n1", "401"}, logB: []string{"peer refused", "peer=n0"}},
		{name: "a step of the rotation left out", a: []string{old}, b: []string{secret, old},
			logA: []string{"peer refused", "peer=n1", "second proof does not fit this node's cluster secret"},
			logB: []string{"refused by the peer", "peer=n0", "second proof does not fit"}},
		{name: "none at the dialler", b: []string{secret},
			logA: []string{"peer refused", "no cluster secret is set"}},
		{name: "none at the acceptor", a: []string{secret}, told: "dial 1 rejected",
			logA: []string{"refused by the peer", "401"}, logB: []string{"peer refused", "does not fit"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newNetwork()
				b := net.start(t, 1, 2, deaf, secrets(tt.b...))
				a := net.start(t, 0, 2, secrets(tt.a...))
				synctest.Wait()
				if tt.logA == nil {
					a.owner.wantLinks(t, "up 1 dialled")
					b.owner.wantLinks(t, "up 1 accepted")
				} else {
					time.Sleep(time.Second)
					for _, told := range a.owner.take() {
						if want := cmp.Or(tt.told, "dial 1 failed"); told != want {
							t.Errorf("the dialler was told %q", told)
						}
					}
					for _, told := range b.owner.take() {
						if !strings.HasPrefix(told, "dial") && tt.name != "a step of the rotation left out" {
							t.Errorf("the acceptor was told %q", told)
						}
					}
					a.logs(tt.logA...)
				}
				if tt.logB != nil {
					b.logs(tt.logB...)
				}
				for _, x := range []*node{a, b} {
					x.stop()
					for _, s := range []string{old, wrong, secret} {
						if strings.Contains(x.log.String(), s) {
							t.Errorf("a secret is in the log:\n%s", x.log)
						}
					}
				}
			})
		})
	}
}

// What the acceptor answers before the upgrade, to whom, and that nothing
// happens for it.
func TestTurnedAway(t *testing.T) {
	now := func() int64 { return time.Now().UnixMilli() }
	good := func() []byte { return appendRequest(nil, secret, now(), "n0", "n1") }
	alter := func(at int) []byte {
		b := good()
		b[at] ^= 1
		return b
	}
	swapped := func() []byte { // names exchanged, by someone without the secret
		b := good()
		at := 1 + 8 + nonceBytes
		copy(b[at:], "\x02n1\x02n0")
		return b
	}
	for _, tt := range []struct {
		name   string
		h      func() http.Header
		status int
		text   string
	}{
		{"no proof", func() http.Header { return nil }, 401, "no proof of the cluster secret"},
		{"empty", func() http.Header { return http.Header{header: {""}} }, 401, "is cut off"},
		{"two", func() http.Header { return http.Header{header: {"a", "b"}} }, 401, "stands 2 times"},
		{"not base64", func() http.Header { return http.Header{header: {"%%%"}} }, 401, "illegal base64"},
		{"huge", func() http.Header { return http.Header{header: {strings.Repeat("A", 4000)}} }, 401, "at most"},
		{"cut off", func() http.Header { b := good(); return proofHeader(b[:len(b)-1]) }, 401, "is cut off"},
		{"longer", func() http.Header { return proofHeader(append(good(), 0)) }, 401, "longer than it says"},
		{"other version", func() http.Header { b := good(); b[0] = 9; return proofHeader(b) }, 401, "is of version 9; this node speaks version 1"},
		{"no name", func() http.Header { return proofHeader(appendRequest(nil, secret, now(), "", "n1")) }, 401, "empty name"},
		{"wrong secret", func() http.Header { return proofHeader(appendRequest(nil, "wrong", now(), "n0", "n1")) }, 401, "does not fit"},
		{"time altered", func() http.Header { return proofHeader(alter(8)) }, 401, "does not fit"},
		{"nonce altered", func() http.Header { return proofHeader(alter(9)) }, 401, "does not fit"},
		{"name altered", func() http.Header { return proofHeader(alter(1 + 8 + nonceBytes + 1)) }, 401, "does not fit"},
		{"mac altered", func() http.Header { return proofHeader(alter(len(good()) - 1)) }, 401, "does not fit"},
		{"names swapped", func() http.Header { return proofHeader(swapped()) }, 401, "does not fit"},
		{"for another node", func() http.Header { return proofHeader(appendRequest(nil, secret, now(), "n0", "n2")) }, 403,
			`that is node "n1", not "n2": correct the address of "n2" in the peers list of "n0"`},
		{"clock behind", func() http.Header {
			return proofHeader(appendRequest(nil, secret, now()-3*time.Hour.Milliseconds(), "n0", "n1"))
		},
			403, `the clocks of node "n0" and node "n1" are 3h0m0s apart`},
		{"clock ahead", func() http.Header {
			return proofHeader(appendRequest(nil, secret, now()+3*time.Hour.Milliseconds(), "n0", "n1"))
		},
			403, `are 3h0m0s apart`},
		{"clock absurd", func() http.Header { return proofHeader(appendRequest(nil, secret, -1<<63, "n0", "n1")) }, 403, "apart"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newNetwork()
				x := net.start(t, 1, 3, deaf)
				g, status, text := net.knock(t, addr(1), tt.h())
				if g != nil || status != tt.status || !strings.Contains(text, tt.text) {
					t.Errorf("answered %d %q, want %d with %q", status, text, tt.status, tt.text)
				}
				synctest.Wait()
				x.owner.wantLinks(t)
				x.logs("level=WARN", "peer refused", "remote=")
			})
		})
	}
}

// The replica port is none for those who speak plain HTTP, even with a proof.
func TestNoUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		net.start(t, 1, 2, deaf)
		nc, err := net.dial(t.Context(), addr(1))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		req, _ := http.NewRequest("GET", "http://n1"+Path, nil)
		req.Header = proofHeader(appendRequest(nil, secret, time.Now().UnixMilli(), "n0", "n1"))
		resp, err := clientOn(nc).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusUpgradeRequired {
			t.Errorf("answered %d", resp.StatusCode)
		}
	})
}

// Clocks that are an hour and a half apart are the machine's to refuse: it can
// say so to both sides.
func TestClocksWithinBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		a := net.start(t, 0, 2, func(c *Config) { c.Wall = func() time.Time { return time.Now().Add(-90 * time.Minute) } })
		synctest.Wait()
		a.owner.wantLinks(t, "up 1 dialled")
		b.owner.wantLinks(t, "up 1 accepted")
	})
}

// A recorded conversation, played again, gets no further than the upgrade, and
// is told nothing.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		g := net.visit(t, addr(1), "n0", "n1")
		second := prove(secret, diallerLabel, g.q.raw, g.a.raw)
		synctest.Wait()
		x.owner.wantLinks(t, "up 1 accepted")

		again, _, _ := net.knock(t, addr(1), proofHeader(g.q.raw))
		again.write(websocket.MessageBinary, second)
		if got := again.closed(); !strings.HasPrefix(got, "1008 the second proof does not fit") {
			t.Errorf("closed with %q", got)
		}
		synctest.Wait()
		x.owner.wantLinks(t)
		x.logs("peer refused", "peer=n0", "second proof")
	})
}

// What a node has said cannot be said back to it.
func TestReflection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		g := net.greet(t, addr(1), "n0", "n1")
		g.write(websocket.MessageBinary, prove(secret, acceptorLabel, g.q.raw, g.a.raw))
		if got := g.closed(); !strings.HasPrefix(got, "1008 ") {
			t.Errorf("closed with %q", got)
		}
		synctest.Wait()
		x.owner.wantLinks(t)
	})
}

// A guest that says nothing, or not enough, has the handshake's time; one that
// says something else ends at once.
func TestSecondProof(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(g *guest)
		want time.Duration
	}{
		{"nothing", func(*guest) {}, time.Second},
		{"pings", func(g *guest) {
			for range 1000 {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				g.ws.Ping(ctx)
			}
		}, 0},
		{"half a frame", func(g *guest) { g.raw.Write([]byte{0x82, 0xa0, 0, 0, 0, 0, 1}) }, time.Second},
		{"text", func(g *guest) {
			g.write(websocket.MessageText, prove(secret, diallerLabel, g.q.raw, g.a.raw))
		}, 0},
		{"short", func(g *guest) { g.write(websocket.MessageBinary, []byte{1}) }, 0},
		{"long", func(g *guest) { g.raw.Write([]byte("\x82\xfe\x00\x80\x00\x00\x00\x00" + strings.Repeat("x", 128))) }, 0},
		{"garbage", func(g *guest) { g.raw.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }, 0},
		{"rsv1", func(g *guest) { g.raw.Write([]byte{0xc2, 0x81, 0, 0, 0, 0, 1}) }, 0},
		{"goes away", func(g *guest) { g.raw.Close() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newNetwork()
				x := net.start(t, 1, 2, deaf)
				g := net.greet(t, addr(1), "n0", "n1")
				begin := time.Now()
				go tt.do(g)
				g.closed()
				if took := time.Since(begin); took > tt.want {
					t.Errorf("ended after %v, want %v", took, tt.want)
				}
				g.ws.CloseNow()
				synctest.Wait()
				x.owner.wantLinks(t)
				if n := len(x.tr.guests[0]); n != 0 {
					t.Errorf("%d guests are left", n)
				}
			})
		})
	}
}

// However many recorded requests come in, those of a name keep few connections
// open, and the peer itself gets through.
func TestGuestsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		raw := appendRequest(nil, secret, time.Now().UnixMilli(), "n0", "n1")
		var guests []*guest
		for range 3 * maxGuests {
			g, _, _ := net.knock(t, addr(1), proofHeader(raw))
			guests = append(guests, g)
			synctest.Wait()
		}
		if n := len(x.tr.guests[0]); n != maxGuests {
			t.Errorf("%d guests, want %d", n, maxGuests)
		}
		for i, g := range guests {
			g.raw.SetReadDeadline(time.Now().Add(time.Nanosecond))
			_, err := g.raw.Read(make([]byte, 1))
			if stays := errors.Is(err, os.ErrDeadlineExceeded); stays != (i >= 2*maxGuests) {
				t.Errorf("guest %d of %d: it is here still: %v (%v)", i, len(guests), stays, err)
			}
		}
		net.visit(t, addr(1), "n0", "n1")
		for _, g := range guests {
			g.raw.Close()
		}
		synctest.Wait()
		x.owner.wantLinks(t, "up 1 accepted")
	})
}

// A name has room for few links; nodes that are not in the list share theirs.
func TestTooManyLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		var want []string
		for i := range maxLinks {
			net.visit(t, addr(1), "n0", "n1")
			synctest.Wait()
			want = append(want, "up "+string(rune('1'+i))+" accepted")
		}
		if got := net.visit(t, addr(1), "n0", "n1").closed(); got != `1008 4 links to node "n0" stand already` {
			t.Errorf("closed with %q", got)
		}
		net.visit(t, addr(1), "n9", "n1")
		synctest.Wait()
		x.owner.wantLinks(t, append(want, "up 5 accepted")...)
		x.logs("peer refused", "peer=n0", "links to node")
	})
}

// An address of the list that leads to this node itself: the machine is shown
// both ends, for only it can tell itself from a namesake.
func TestOneself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 0, 2, func(c *Config) { c.Peers[1].URL = "http://" + addr(0) })
		synctest.Wait()
		told := strings.Join(x.owner.take(), ", ")
		if !strings.Contains(told, "accepted") || !strings.Contains(told, "dialled") {
			t.Errorf("told %q", told)
		}
		x.logs("link up", "peer=n0", "dialled=true")
	})
}

// An address that leads to a third node is refused by that node, and both say so.
func TestWrongNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		c := net.start(t, 2, 3, deaf)
		a := net.start(t, 0, 3, func(c *Config) { c.Peers[1].URL = "http://" + addr(2) })
		time.Sleep(10 * time.Millisecond)
		if told := a.owner.take(); !slices.Contains(told, "dial 1 rejected") {
			t.Errorf("told %q", told)
		}
		a.logs("level=WARN", "refused by the peer", "peer=n1", "403", `that is node`, `n2`)
		c.logs("level=WARN", "peer refused", "peer=n0", `correct the address of`, `n1`)
	})
}

// A server that is none of ours, or says that it is another one, is refused by
// the dialler.
func TestFalseAcceptor(t *testing.T) {
	upgrade := func(name string, then func(q, a []byte, ws *websocket.Conn)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			a := appendAnswer(nil, name)
			if name != "" {
				w.Header().Set(header, encoding.EncodeToString(a))
			}
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer ws.CloseNow()
			q, _ := decodeHeader(r.Header.Values(header), maxRequestBytes)
			then(q, a, ws)
			ws.Read(context.Background())
		}
	}
	quiet := func(_, _ []byte, _ *websocket.Conn) {}
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		log     []string
	}{
		{"any WebSocket server", upgrade("", quiet), []string{"level=WARN", "peer refused", "Holdfast-Peer stands 0 times"}},
		{"another node", upgrade("n7", quiet), []string{"level=WARN", "peer refused", "that is node", "n7", "not", "n1"}},
		{"proves nothing", upgrade("n1", func(_, _ []byte, ws *websocket.Conn) { ws.Read(context.Background()) }), []string{"level=DEBUG", "no link", "read the second proof", "timeout"}},
		{"reflects the proof", upgrade("n1", func(_, _ []byte, ws *websocket.Conn) {
			_, mac, _ := ws.Read(context.Background())
			ws.Write(context.Background(), websocket.MessageBinary, mac)
		}), []string{"level=WARN", "peer refused", "second proof does not fit"}},
		{"proves with another nonce", upgrade("n1", func(q, a []byte, ws *websocket.Conn) {
			ws.Read(context.Background())
			ws.Write(context.Background(), websocket.MessageBinary, prove(secret, acceptorLabel, q, appendAnswer(nil, "n1")))
		}), []string{"level=WARN", "peer refused", "second proof does not fit"}},
		{"wants no link", upgrade("n1", func(_, _ []byte, ws *websocket.Conn) {
			ws.Read(context.Background())
			ws.Close(websocket.StatusPolicyViolation, "not you")
		}), []string{"level=WARN", "refused by the peer", "not you"}},
		{"goes away", upgrade("n1", func(_, _ []byte, ws *websocket.Conn) {
			ws.Read(context.Background())
			ws.Close(websocket.StatusGoingAway, "not now")
		}), []string{"level=DEBUG", "no link", "not now"}},
		{"redirects", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+addr(2)+Path, http.StatusTemporaryRedirect)
		}, []string{"level=DEBUG", "no link", "answered 307"}},
		{"not found", http.NotFound, []string{"level=DEBUG", "no link", "answered 404"}},
		{"an endless answer", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(w, strings.NewReader(strings.Repeat("x", 1<<20)))
		}, []string{"level=DEBUG", "no link", "answered 200"}},
		{"never answers", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			[]string{"level=DEBUG", "no link", "timeout"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newNetwork()
				server := &http.Server{Handler: tt.handler}
				ln := net.listen(addr(1))
				served := make(chan error)
				go func() { served <- server.Serve(ln) }()
				net.listen(addr(2)) // nobody must come
				a := net.start(t, 0, 2)
				time.Sleep(1250 * time.Millisecond)
				a.logs(append(tt.log, "peer=n1")...)
				for _, told := range a.owner.take() {
					if want := map[bool]string{true: "dial 1 rejected", false: "dial 1 failed"}[tt.name == "wants no link"]; told != want {
						t.Errorf("told %q, want %q", told, want)
					}
				}
				if n := net.dialled(addr(2)); n > 0 {
					t.Errorf("followed a redirect %d times", n)
				}
				a.stop()
				server.Close()
				<-served
			})
		})
	}
}

// Requests that are not let in cost no more than their answer: the connection
// of one is not kept.
func TestTurnedAwayCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		net.start(t, 1, 2, deaf)
		nc, err := net.dial(t.Context(), addr(1))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, "GET "+Path+" HTTP/1.1\r\nHost: n1\r\n\r\n")
		all, _ := io.ReadAll(nc)
		if !strings.HasPrefix(string(all), "HTTP/1.1 401 ") {
			t.Errorf("answered %q", all)
		}
	})
}
