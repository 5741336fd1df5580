package link

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/replica"
)

func lost(id int) replica.Message { return &replica.Lost{ID: uint64(id)} }

// chunk is a bulk message with n bytes of events.
func chunk(id, n int) replica.Message {
	return &replica.OfferChunk{ID: uint64(id), Events: bytes.Repeat([]byte{byte(id)}, n)}
}

func control(link replica.LinkID, msg replica.Message) replica.Send {
	return replica.Send{Link: link, Lane: replica.Control, Msg: msg}
}

func bulk(link replica.LinkID, msg replica.Message) replica.Send {
	return replica.Send{Link: link, Lane: replica.Bulk, Msg: msg}
}

// Both sides dial, and both links are reported on both sides. Of the two the
// machine closes one; then nobody dials any more.
func TestBothSidesDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		net.gate = make(chan struct{})
		a, b := net.start(t, 0, 2), net.start(t, 1, 2)
		synctest.Wait() // both listen, and have begun to dial
		close(net.gate)
		synctest.Wait()
		var gone []string
		all := [][]string{a.owner.take(), b.owner.take()} // before either closes a link
		for i, x := range []*node{a, b} {
			told := all[i]
			slices.SortFunc(told, func(a, b string) int { return strings.Compare(a[5:], b[5:]) })
			if len(told) != 2 || told[0][5:] != "accepted" || told[1][5:] != "dialled" {
				t.Fatalf("n%d was told %q", x.rank, told)
			}
			goes := replica.LinkID(told[1-x.rank][3] - '0') // the one that the higher priority has dialled
			x.tr.Push(replica.CloseLink{Link: goes, Why: "second link to one peer"})
			gone = append(gone, fmt.Sprintf("down %d", goes))         // told where the other side was first
			x.tr.Push(replica.Redial{Peer: replica.Rank(1 - x.rank)}) // as the machine does, although there is a link
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(net.to); n != 2 {
			t.Errorf("%d dials, want 2", n)
		}
		for i, x := range []*node{a, b} {
			if told := x.owner.take(); len(told) > 0 && !slices.Equal(told, gone[i:i+1]) {
				t.Errorf("n%d was told %q", x.rank, told)
			}
		}
		if len(a.tr.links) != 1 || len(b.tr.links) != 1 {
			t.Errorf("%d and %d links stand, want 1 each", len(a.tr.links), len(b.tr.links))
		}
	})
}

// Messages of a lane arrive in their order, both ways.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		a := net.start(t, 0, 2)
		synctest.Wait()
		a.owner.wantLinks(t, "up 1 dialled")
		b.owner.wantLinks(t, "up 1 accepted")
		var wantA, wantB []string
		for i := range 300 {
			a.tr.Push(control(1, lost(i)))
			wantB = append(wantB, fmt.Sprintf("received 1: %d", i))
		}
		for i := range 20 {
			b.tr.Push(bulk(1, chunk(i, i*i*i*17)))
			wantA = append(wantA, fmt.Sprintf("received 1: %d with %d bytes", i, i*i*i*17))
		}
		synctest.Wait()
		a.owner.want(t, wantA...)
		b.owner.wantLinks(t, wantB...)
	})
}

// Bulk is pulled after a Wake, one message at a time, and until there is none.
func TestPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		a := net.start(t, 0, 2)
		left := 3
		a.owner.then(func(in replica.Input) {
			if p, ok := in.(replica.Pull); ok && left > 0 {
				if p.Max < pieceBytes/2 {
					t.Errorf("asked for %d bytes", p.Max)
				}
				a.tr.Push(bulk(p.Link, chunk(left, 100_000)))
				left--
			}
		})
		synctest.Wait()
		a.owner.want(t, "up 1 dialled")
		b.owner.take()
		a.tr.Push(replica.Wake{Link: 1})
		synctest.Wait()
		a.owner.want(t, "pull 1", "pull 1", "pull 1", "pull 1")
		b.owner.wantLinks(t, "received 1: 3 with 100000 bytes", "received 1: 2 with 100000 bytes", "received 1: 1 with 100000 bytes")
		a.tr.Push(replica.Wake{Link: 1})
		synctest.Wait()
		a.owner.want(t, "pull 1")
	})
}

// Control overtakes a bulk message that is under way: it waits for one piece.
func TestControlOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		g := net.visit(t, addr(1), "n0", "n1")
		synctest.Wait()
		x.tr.Push(bulk(1, chunk(1, 1<<20)))
		synctest.Wait() // the first piece is on its way: the pipe holds nothing
		x.tr.Push(control(1, lost(7)))
		x.tr.Push(control(1, lost(8)))
		if b := g.read(); b[0] != bulkPiece || len(b) != 1+pieceBytes {
			t.Errorf("first came %d with %d bytes, want a piece of bulk", b[0], len(b))
		}
		if b := g.read(); !bytes.Equal(b, append([]byte{controlPiece}, stream(lost(7), lost(8))...)) {
			t.Errorf("second came %x, want the control messages in one", b[:min(len(b), 100)])
		}
		if b := g.read(); b[0] != bulkPiece {
			t.Errorf("third came %d, want bulk", b[0])
		}
	})
}

// A peer that does not read never makes Push wait, costs a bounded amount of
// memory, is pulled for no more than once, and loses its link.
func TestPeerDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		x.owner.then(func(in replica.Input) {
			if p, ok := in.(replica.Pull); ok {
				x.tr.Push(bulk(p.Link, chunk(1, p.Max)))
			}
		})
		net.visit(t, addr(1), "n0", "n1")
		synctest.Wait()
		c := x.tr.link(1)
		x.tr.Push(replica.Wake{Link: 1})
		synctest.Wait()
		for i := range 30_000 {
			x.tr.Push(control(1, lost(i)))
			x.tr.Push(replica.Wake{Link: 1})
			if n := len(c.out.control.filling) + len(c.out.bulk.filling); n > controlLimit+bulkLimit {
				t.Fatalf("%d bytes wait", n)
			}
		}
		synctest.Wait()
		x.owner.wantLinks(t, "up 1 accepted", "pull 1")
		time.Sleep(time.Second)
		synctest.Wait()
		x.owner.wantLinks(t, "down 1")
		x.logs("link down", "does not take the control messages")
	})
}

// The same without so much control that its room is used up: the write has a deadline.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		net.visit(t, addr(1), "n0", "n1")
		synctest.Wait()
		x.tr.Push(control(1, lost(1)))
		time.Sleep(999 * time.Millisecond)
		x.owner.wantLinks(t, "up 1 accepted")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		x.owner.wantLinks(t, "down 1")
		x.logs("link down", "i/o timeout")
	})
}

// Heartbeats get through to a peer that reads bulk slowly, each behind one piece at most.
func TestHeartbeatsAheadOfBulk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		x.owner.then(func(in replica.Input) {
			if p, ok := in.(replica.Pull); ok {
				x.tr.Push(bulk(p.Link, chunk(1, p.Max)))
			}
		})
		g := net.visit(t, addr(1), "n0", "n1")
		synctest.Wait()
		x.tr.Push(replica.Wake{Link: 1})
		behind := 0
		for range 100 { // a piece each 100 ms, and a heartbeat each 100 ms
			x.tr.Push(control(1, lost(1)))
			for b := g.read(); b[0] != controlPiece; b = g.read() {
				behind++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if behind > 101 {
			t.Errorf("100 heartbeats waited behind %d pieces", behind)
		}
		g.raw.Close()
	})
}

// Links that the machine gives up as soon as they stand do not fill the log; what comes after one that stood is told at once.
func TestFlappingLinksAreQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		b.owner.then(func(in replica.Input) {
			if up, ok := in.(replica.LinkUp); ok {
				b.tr.Push(replica.CloseLink{Link: up.Link, Why: "another peers list"})
			}
		})
		a := net.start(t, 0, 2)
		time.Sleep(65 * time.Second)
		synctest.Wait()
		for _, x := range []*node{a, b} {
			ups := slices.DeleteFunc(x.owner.take(), func(s string) bool { return !strings.HasPrefix(s, "up ") })
			if n := len(ups); n < 100 {
				t.Errorf("n%d: only %d links", x.rank, n)
			}
			for _, msg := range []string{`msg="link up"`, `msg="link down"`} {
				if n := strings.Count(x.log.String(), msg); n < 3 || n > 5 {
					t.Errorf("n%d: %d lines %s", x.rank, n, msg)
				}
			}
			x.logs("link down", "another peers list", "skipped=")
		}

		// One that stays is told of, and so is its end.
		var stands replica.LinkID
		b.owner.then(func(in replica.Input) {
			if up, ok := in.(replica.LinkUp); ok {
				stands = up.Link
			}
		})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		stayed := stands
		b.logs("link up", fmt.Sprintf("link=%d ", stayed))
		b.tr.Push(replica.CloseLink{Link: stayed, Why: "enough"})
		time.Sleep(400 * time.Millisecond)
		synctest.Wait()
		b.logs("link down", fmt.Sprintf("link=%d ", stayed), "enough")
		b.logs("link up", fmt.Sprintf("link=%d ", stands))
		if stands == stayed {
			t.Error("the link did not come again")
		}
	})
}

// CloseLink lets out what was sent before, tells the peer why, and is not
// followed by a LinkDown.
func TestCloseLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		a := net.start(t, 0, 2)
		synctest.Wait()
		a.owner.take()
		b.owner.take()
		a.tr.Push(bulk(1, chunk(5, 200_000)))
		a.tr.Push(control(1, lost(6)))
		a.tr.Push(replica.CloseLink{Link: 1, Why: "clocks differ"})
		a.tr.Push(control(1, lost(7))) // too late
		b.tr.Push(control(1, lost(8))) // not heard any more
		synctest.Wait()
		a.owner.want(t)
		b.owner.wantLinks(t, "received 1: 6", "received 1: 5 with 200000 bytes", "down 1")
		a.logs("link down", "peer=n1", `err="clocks differ"`)
		b.logs("link down", "peer=n0", "closed by the peer", "clocks differ")
		time.Sleep(time.Second)
		a.owner.want(t, "up 2 dialled") // and there is no other way back
	})
}

// A peer that does not take its farewell is let go all the same.
func TestCloseLinkDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		g := net.visit(t, addr(1), "n0", "n1")
		synctest.Wait()
		x.tr.Push(replica.CloseLink{Link: 1, Why: strings.Repeat("ä", 100)})
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := g.raw.Write([]byte("x")); err == nil {
			t.Error("the connection is still there")
		}
		x.owner.wantLinks(t, "up 1 accepted")
	})
}

// What a peer sends must be of this protocol. What is not ends its link, with
// the reason told where the frames are whole, and reaches the owner no more.
func TestGarbage(t *testing.T) {
	hello := stream(lost(1))
	for _, tt := range []struct {
		name string
		do   func(g *guest)
		want string // close frame
		log  string
	}{
		{"text", func(g *guest) { g.write(websocket.MessageText, []byte("hello")) }, "1000 not a peer's message", "text"},
		{"empty", func(g *guest) { g.write(websocket.MessageBinary, nil) }, "1000 not a peer's message", "holds nothing"},
		{"no stream", func(g *guest) { g.piece(3, hello) }, "1000 not a peer's message: it begins with 3", "begins with 3"},
		{"zero", func(g *guest) { g.piece(0, hello) }, "1000 not a peer's message", "begins with 0"},
		{"long control", func(g *guest) { g.piece(controlPiece, []byte{0, 1, 0, 1}) }, "1000 a message of 65537 bytes; at most 65536", "65537"},
		{"endless bulk", func(g *guest) { g.piece(bulkPiece, []byte{0xff, 0xff, 0xff, 0xff}) }, "1000 a message of 4294967295 bytes", "4294967295"},
		{"oversized", func(g *guest) { g.piece(bulkPiece, make([]byte, pieceBytes+1)) }, "1009 read limited", "message too big"},
		{"compressed", func(g *guest) { g.raw.Write([]byte{0xc2, 0x81, 0, 0, 0, 0, 1}) }, "1002 received header with unexpected rsv bits", "rsv"},
		{"unmasked", func(g *guest) { g.raw.Write([]byte{0x82, 0x01, 1}) }, "broken", "unmasked"},
		{"long ping", func(g *guest) { g.raw.Write([]byte("\x89\xfe\x01\x00\x00\x00\x00\x00")) }, "1002 received control frame payload", "control frame"},
		{"http", func(g *guest) { g.raw.Write([]byte("GET / HTTP/1.1\r\n\r\n")) }, "1002", "rsv"},
		{"says goodbye", func(g *guest) { g.ws.Close(websocket.StatusGoingAway, "bye") }, "", "bye"},
		{"breaks", func(g *guest) { g.raw.Close() }, "broken", "EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := newNetwork()
				x := net.start(t, 1, 2, deaf)
				g := net.visit(t, addr(1), "n0", "n1")
				g.piece(controlPiece, hello)
				synctest.Wait()
				x.owner.wantLinks(t, "up 1 accepted", "received 1: 1")
				begin := time.Now()
				go func() {
					tt.do(g)
					g.ws.Write(t.Context(), websocket.MessageBinary, append([]byte{controlPiece}, stream(lost(2))...))
				}()
				if got := g.closed(); !strings.HasPrefix(got, tt.want) {
					t.Errorf("closed with %q, want %q", got, tt.want)
				}
				g.raw.Close()
				synctest.Wait()
				x.owner.wantLinks(t, "down 1")
				x.logs("link down", "peer=n0", tt.log)
				if took := time.Since(begin); took > 0 {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// A flood of pings is read and not answered.
func TestPingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		g := net.visit(t, addr(1), "n0", "n1")
		for range 10_000 {
			g.raw.Write([]byte{0x89, 0x80, 0, 0, 0, 0})
			g.raw.Write([]byte{0x8a, 0x80, 0, 0, 0, 0})
		}
		g.piece(controlPiece, stream(lost(1)))
		synctest.Wait()
		x.owner.wantLinks(t, "up 1 accepted", "received 1: 1")
		g.raw.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := g.raw.Read(make([]byte, 1)); n != 0 {
			t.Errorf("there was an answer, %v", err)
		}
	})
}

// Actions for links and peers that are not there are passed over; those of the
// state are not the transport's.
func TestPushNowhere(t *testing.T) {
	tr, err := New(Config{Peers: list(2), Secrets: func() []string { return nil }, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []replica.Action{
		control(9, lost(1)), bulk(9, lost(1)), replica.Wake{Link: 9}, replica.CloseLink{Link: 9},
		replica.Redial{Peer: 0}, replica.Redial{Peer: 7}, replica.Redial{Peer: replica.Nobody}, replica.Redial{Peer: 99},
	} {
		if !tr.Push(a) {
			t.Errorf("%T is not taken", a)
		}
	}
	if tr.Push(replica.Freeze{}) {
		t.Error("Freeze is taken")
	}
}

// Run lets out what was sent, says goodbye, and leaves nothing behind.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		b := net.start(t, 1, 2, deaf)
		a := net.start(t, 0, 2)
		synctest.Wait()
		b.owner.take()
		a.tr.Push(control(1, lost(9)))
		a.stop()
		synctest.Wait()
		a.owner.want(t, "up 1 dialled", "down 1")
		b.owner.wantLinks(t, "received 1: 9", "down 1")
		b.logs("link down", "closed by the peer", "this node stops")
		if err := a.tr.Run(t.Context(), a.owner); err == nil {
			t.Error("ran twice")
		}
	})
}

// A transport that does not run accepts nobody.
func TestNotRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		x.cancel()
		synctest.Wait()
		g, status, _ := net.knock(t, addr(1), proofHeader(appendRequest(nil, secret, time.Now().UnixMilli(), "n0", "n1")))
		if g != nil || status != 503 {
			t.Errorf("answered %d, want 503", status)
		}
	})
}

// Guests, too, end with Run.
func TestStopWithGuests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		x := net.start(t, 1, 2, deaf)
		net.greet(t, addr(1), "n0", "n1")
		synctest.Wait()
		begin := time.Now()
		x.stop()
		if took := time.Since(begin); took > 0 {
			t.Errorf("stopped after %v", took)
		}
	})
}
