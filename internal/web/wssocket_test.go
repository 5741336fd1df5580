package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// dialSocket connects without reading anything afterwards.
func dialSocket(t *testing.T, dial func() (net.Conn, error), change func(*websocket.DialOptions)) (*websocket.Conn, net.Conn) {
	t.Helper()
	var nc net.Conn
	transport := &http.Transport{DialContext: func(context.Context, string, string) (c net.Conn, err error) {
		nc, err = dial()
		return nc, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	opts := &websocket.DialOptions{Subprotocols: []string{wsProtocol}, HTTPClient: &http.Client{Transport: transport}}
	if change != nil {
		change(opts)
	}
	ws, _, err := websocket.Dial(t.Context(), "ws://localhost:7621/v1/ws", opts)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	return ws, nc
}

func (p *port) pipe() (net.Conn, error) {
	near, far := net.Pipe()
	p.ln.conns <- far
	return near, nil
}

func tell(t *testing.T, ws *websocket.Conn, format string, args ...any) {
	t.Helper()
	if err := ws.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, format, args...)); err != nil {
		t.Fatal(err)
	}
}

// hear reads until a message has want in it, or the end, and returns all that came.
func hear(ws *websocket.Conn, want string) (heard []string, err error) {
	for {
		_, text, err := ws.Read(context.Background())
		if err != nil {
			return heard, err
		}
		heard = append(heard, string(text))
		if want != "" && strings.Contains(string(text), want) {
			return heard, nil
		}
	}
}

func (p *port) sockets() []*socket {
	v := &p.server.sockets
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.all))
}

func (p *port) holders(key string) int {
	v, _, _ := p.server.node.View([]byte(key), 10, 10)
	return v.HoldersTotal
}

// A client that reads but answers no pings is cut at the second one missed.
func TestWebSocketMissedPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		ws, _ := dialSocket(t, p.pipe, func(o *websocket.DialOptions) {
			o.OnPingReceived = func(context.Context, []byte) bool { return false }
		})
		begin := time.Now()
		heard, err := hear(ws, "")
		if took := time.Since(begin); took != 3*wsBeat || websocket.CloseStatus(err) != -1 {
			t.Errorf("ended after %v with %v, after %q", took, err, heard)
		}
		if len(heard) != 2 && len(heard) != 3 { // the last one is due at the same instant
			t.Errorf("heard %q", heard)
		}
	})
}

// A client that does not read its answers is told so and cut off; one that does
// not even then read is cut all the same.
func TestWebSocketTooSlow(t *testing.T) {
	for _, reads := range []bool{true, false} {
		t.Run(fmt.Sprint("reads at last: ", reads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPort(t, Config{})
				defer p.shutdown()
				ws, _ := dialSocket(t, p.pipe, nil)
				defer ws.CloseNow()
				tell(t, ws, `{"op":"acquire","id":1,"key":"k"}`)
				for i := range wsOutputLimit / wsOverhead {
					if ws.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"op":"ping","id":%d}`, i+1)) != nil {
						break
					}
					synctest.Wait()
					if p.socketEnding() != wsGoesOn {
						break
					}
				}
				if why := p.socketEnding(); why != wsTooSlow {
					t.Fatalf("ending %v", why)
				}
				if reads {
					if _, err := hear(ws, ""); websocket.CloseStatus(err) != 4429 {
						t.Errorf("ended with %v", err)
					}
				} else {
					time.Sleep(wsEndTimeout)
				}
				synctest.Wait()
				if len(p.sockets()) != 0 {
					t.Error("the socket is still there")
				}
				// The grant was on the way when reading began again, or never got there.
				if got := p.holders("k"); got != 0 && !reads {
					t.Errorf("%d hold what nobody was told of", got)
				}
			})
		})
	}
}

func (p *port) socketEnding() wsEnding {
	for _, c := range p.sockets() {
		return c.ending()
	}
	return wsGone
}

// A grant that does not reach its client is withdrawn: at once without a ticket,
// after the grace with one.
func TestWebSocketUndelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		ws, nc := dialSocket(t, p.pipe, nil)
		tell(t, ws, `{"op":"acquire","id":1,"key":"a"}`)
		tell(t, ws, `{"op":"acquire","id":2,"key":"b","ticket":"000102030405060708090a0b0c0d0e0f"}`)
		synctest.Wait()
		if p.holders("a") != 1 || p.holders("b") != 1 {
			t.Fatal("nothing is granted")
		}
		nc.Close()
		synctest.Wait()
		if p.holders("a") != 0 || p.holders("b") != 1 {
			t.Errorf("%d hold a, %d hold b", p.holders("a"), p.holders("b"))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if p.holders("b") != 0 {
			t.Error("b is held after the grace")
		}
	})
}

// What is said of a lease is what is left when it goes out.
func TestWebSocketLeaseIsWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		ws, _ := dialSocket(t, p.pipe, nil)
		defer ws.CloseNow()
		tell(t, ws, `{"op":"ping","id":1}`) // the writer stands at its answer
		synctest.Wait()
		tell(t, ws, `{"op":"acquire","id":2,"key":"k","lease":30}`)
		time.Sleep(12 * time.Second)
		heard, err := hear(ws, "granted")
		if err != nil || !strings.Contains(heard[len(heard)-1], `"lease":18,`) {
			t.Errorf("heard %q, %v", heard, err)
		}
	})
}

// Places are told as they change, and not more than four times a second.
func TestWebSocketPositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		box := make(watcher, 1000)
		s := p.server.node.Open(locks.Origin{Owner: "ahead"}, box)
		defer s.Close()
		for i := range 41 {
			s.Do([]locks.Command{{Op: locks.OpAcquire, Ref: uint64(i + 1), Key: []byte("k")}})
		}
		ws, _ := dialSocket(t, p.pipe, nil)
		defer ws.CloseNow()
		tell(t, ws, `{"op":"acquire","id":1,"key":"k"}`)
		told := make(chan []string)
		go func() {
			heard, _ := hear(ws, `"position":1}`)
			told <- heard
		}()
		for range 40 { // twenty places a second
			time.Sleep(50 * time.Millisecond)
			s.Do([]locks.Command{{Op: locks.OpRelease, Key: []byte("k"), Token: box.expect(t, locks.Granted).Token}})
		}
		heard := <-told
		if heard[0] != `{"push":"position","id":1,"position":41}` || len(heard) < 8 || len(heard) > 10 {
			t.Errorf("in two seconds: %q", heard)
		}
	})
}

// narrow is a listener whose connections buffer little.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	nc, err := n.Listener.Accept()
	if err == nil {
		err = nc.(*net.TCPConn).SetWriteBuffer(4096)
	}
	return nc, err
}

// Two hundred watchers that do not read keep nobody waiting, hold nothing back,
// and when they read again they are told of the gap.
func TestWebSocketSlowWatchers(t *testing.T) {
	p := newTCPOn(t, func(ln net.Listener) net.Listener { return narrow{ln} })
	dial := func() (net.Conn, error) { return net.Dial("tcp", p.addr) }
	var watchers []*websocket.Conn
	for range 200 {
		ws, _ := dialSocket(t, dial, nil)
		t.Cleanup(func() { ws.CloseNow() })
		tell(t, ws, `{"op":"watch","prefix":"","types":["operator","grant","release"]}`)
		tell(t, ws, `{"op":"ping","id":1}`)
		if _, err := hear(ws, "pong"); err != nil {
			t.Fatal(err)
		}
		watchers = append(watchers, ws)
	}
	n := p.server.node
	// Operators' notices are bounded by the feed alone, and more than what the kernel keeps.
	text := strings.Repeat("x", 1<<10)
	for range 3000 {
		n.Note(node.Notice{Type: node.NoticeOperator, Text: text})
	}
	box := make(watcher, 10)
	s := n.Open(locks.Origin{Owner: "ann"}, box)
	defer s.Close()
	for range 5000 {
		s.Do([]locks.Command{{Op: locks.OpAcquire, Ref: 1, Key: []byte("k")}})
		s.Do([]locks.Command{{Op: locks.OpRelease, Ref: 2, Key: []byte("k"), Token: box.expect(t, locks.Granted).Token}})
		box.expect(t, locks.Released)
	}
	heard, err := hear(watchers[7], `"push":"gap"`)
	if err != nil {
		t.Fatalf("after %d messages: %v", len(heard), err)
	}
	for _, ws := range watchers {
		ws.CloseNow()
	}
}

// Stopping waits for sockets, and does not wait for those who do not read.
func TestWebSocketShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		polite, _ := dialSocket(t, p.pipe, nil)
		deaf, _ := dialSocket(t, p.pipe, nil)
		defer deaf.CloseNow()
		tell(t, deaf, `{"op":"ping","id":1}`)
		ended := make(chan error, 1)
		go func() {
			_, err := hear(polite, "")
			ended <- err
		}()
		synctest.Wait()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > wsEndTimeout {
			t.Errorf("took %v", took)
		}
		if err := <-ended; websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("ended with %v", err)
		}
		<-p.served
	})
}

// With no time left, whoever is left is cut.
func TestWebSocketShutdownInNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		deaf, _ := dialSocket(t, p.pipe, nil)
		defer deaf.CloseNow()
		tell(t, deaf, `{"op":"ping","id":1}`)
		synctest.Wait()
		begin := time.Now()
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errors.New("no time"))
		p.server.Shutdown(ctx)
		if took := time.Since(begin); took != 0 {
			t.Errorf("took %v", took)
		}
		<-p.served
	})
}

func TestWSEndingsHaveNames(t *testing.T) {
	for e := range numWSEndings {
		if e.String() == "" {
			t.Errorf("ending %d has no name", e)
		}
	}
}

// Every code of the table has its words over a WebSocket.
func TestEveryCodeHasAWebSocketAnswer(t *testing.T) {
	s := newServer(t, Config{}, nil)
	for _, code := range locks.Codes() {
		switch code {
		case locks.Lost, locks.ContendedPush, locks.Moved, locks.Queued, locks.CancelDone: // pushes, and what socket words itself
			continue
		}
		a := s.wsReply(&locks.Reply{Ref: 7, Code: code, Key: []byte("k"), Token: 8, Slots: 3})
		known := strings.Contains(" granted not-granted released extended not-holder error ", " "+a.Status+" ")
		if _, forced := map[locks.Code]bool{locks.WaiterRemoved: true, locks.ForceDone: true, locks.HolderChanged: true}[code]; forced {
			continue // no WebSocket op has them
		}
		if a.ID != 7 || !known || a.Status == "error" && (a.Code == "" || a.Code == codeInternal || a.Detail == "") {
			t.Errorf("%v: %s", code, wsText(a))
		}
	}
}

// Pings without end from a client that does not read its pongs end in time.
func TestWebSocketPingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		ws, nc := dialSocket(t, p.pipe, nil)
		defer ws.CloseNow()
		begin := time.Now()
		ping := []byte{0x89, 0x80, 0, 0, 0, 0} // final, masked, empty
		for err := error(nil); err == nil; {
			_, err = nc.Write(ping)
		}
		synctest.Wait()
		if took := time.Since(begin); took > wsEndTimeout || len(p.sockets()) != 0 {
			t.Errorf("after %v there are %d sockets", took, len(p.sockets()))
		}
	})
}

// The page for users has every op, field, type of event and close code.
func TestWebSocketPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/websocket.md")
	if err != nil {
		t.Fatal(err)
	}
	words := slices.Concat([]string{"hello", "stats", "1012"}, slices.Collect(maps.Keys(wsOps)), wsAcquireSchema.names(), wsWatchSchema.names(),
		wsHelloSchema.names(), wsCancelSchema.names(), releaseSchema.names(), extendSchema.names())
	for _, kind := range node.NoticeTypes() {
		words = append(words, kind.String())
	}
	for _, e := range wsEndings {
		if e.code != 0 {
			words = append(words, fmt.Sprint(int(e.code)))
		}
	}
	for _, word := range words {
		if !regexp.MustCompile("(`|\\| |, )" + word + "(`|,| \\|)").Match(page) {
			t.Errorf("%q is missing", word)
		}
	}
	for _, body := range []any{statsPush{}, wsEventPush{}, wsLostPush{}, wsContendedPush{}, wsPositionPush{}, wsMovedPush{}, wsGapPush{}} {
		for i := range reflect.TypeOf(body).NumField() {
			name, _, _ := strings.Cut(reflect.TypeOf(body).Field(i).Tag.Get("json"), ",")
			if !regexp.MustCompile("[`\"]" + name + "[`\"]").Match(page) {
				t.Errorf("%T: %q is missing", body, name)
			}
		}
	}
}

// Answers that fall due together do not cut a client off that can't read so
// fast, and neither do the places it is told: they are left out.
func TestWebSocketManyLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, Config{})
		defer p.shutdown()
		s := p.server.node.Open(locks.Origin{}, make(watcher, 10))
		defer s.Close()
		s.Do([]locks.Command{{Op: locks.OpAcquire, Ref: 1, Key: []byte("k")}})
		ws, _ := dialSocket(t, p.pipe, nil)
		defer ws.CloseNow()
		const many = 2 * wsOutputLimit / wsOverhead
		for i := range many {
			tell(t, ws, `{"op":"acquire","id":%d,"key":"k","wait":1}`, i+1)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if why := p.socketEnding(); why != wsGoesOn {
			t.Fatalf("ending %v", why)
		}
		answers, places := 0, 0
		for answers < many {
			_, text, err := ws.Read(t.Context())
			if err != nil {
				t.Fatalf("after %d answers: %v", answers, err)
			}
			if strings.Contains(string(text), "not-granted") {
				answers++
			} else {
				places++
			}
		}
		if places == 0 || places > wsOutputLimit/2/wsOverhead {
			t.Errorf("%d places were told", places)
		}
	})
}

// What is not answered is bounded; late answers that are not read count.
func TestWebSocketPendingBound(t *testing.T) {
	c := &socket{srv: newServer(t, Config{MaxPending: 10}, nil), pending: map[uint64]*wsPending{}}
	c.out.late = 9
	if err := c.expect(1, "k"); err != nil {
		t.Error(err)
	}
	var refusal *refusedError
	if err := c.expect(2, "k"); !errors.As(err, &refusal) || refusal.answer.body.(*problem).Limit != "pending" {
		t.Errorf("refused with %v", err)
	}
}

// Clients on real sockets take turns: one at a time, with rising tokens.
func TestWebSocketTakeTurns(t *testing.T) {
	const clients, turns = 8, 50
	p := newTCP(t)
	var inside atomic.Int32
	var last atomic.Uint64
	turn := func(ws *websocket.Conn, id int) error {
		if err := ws.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"op":"acquire","id":%d,"key":"k","wait":60}`, id)); err != nil {
			return err
		}
		heard, err := hear(ws, `"status"`)
		if err != nil {
			return err
		}
		granted := tokenTold.FindStringSubmatch(heard[len(heard)-1])
		if granted == nil || inside.Add(1) != 1 {
			return fmt.Errorf("answered %q, while %d were inside", heard, inside.Load())
		}
		token, _ := strconv.ParseUint(granted[1], 10, 64)
		if was := last.Swap(token); was >= token {
			return fmt.Errorf("token %d after %d", token, was)
		}
		inside.Add(-1)
		if err := ws.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"op":"release","id":%d,"key":"k","token":%s}`, id, granted[1])); err != nil {
			return err
		}
		_, err = hear(ws, `"released"`)
		return err
	}
	var all sync.WaitGroup
	for range clients {
		ws, _ := dialSocket(t, func() (net.Conn, error) { return net.Dial("tcp", p.addr) }, nil)
		all.Go(func() {
			defer ws.Close(websocket.StatusNormalClosure, "")
			for i := range turns {
				if err := turn(ws, i+1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if v, _, _ := p.server.node.View([]byte("k"), 1, 1); v.HoldersTotal+v.WaitersTotal != 0 {
		t.Errorf("%d hold and %d wait at the end", v.HoldersTotal, v.WaitersTotal)
	}
}
