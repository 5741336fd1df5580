package native

import (
	"bytes"
	"strings"
	"testing"

	"holdfast/wire"
)

// Whatever bytes a client sends, it reads frames, the last of which says what
// was wrong, or the line for those who speak something else; and the connection
// ends. Behind the bytes come so many of 0xff that any frame which was begun is
// completed, and the next one is out of range.
func FuzzConnection(f *testing.F) {
	hello := wire.AppendRequest(nil, &wire.Request{Op: wire.OpHello, Version: 1, Owner: []byte("fuzz")})
	ticket := wire.Ticket{1}
	seeds := []wire.Request{
		acquireOf(1, "k"), tryOf(0, "k"), releaseOf(2, "k", 1), acquireOf(0, "k"), acquireOf(0, "k"),
		{Op: wire.OpExtend, ID: 3, Key: []byte("k"), Token: 1, LeaseMS: 5},
		{Op: wire.OpCancel, ID: 4, Target: 1},
		{Op: wire.OpPing, ID: 5},
		{Op: wire.OpAcquire, ID: 6, Key: []byte("t"), Ticket: ticket, Flags: wire.FlagRetry | wire.FlagBound},
		{Op: wire.OpAcquire, Key: []byte("t"), Ticket: ticket, Flags: wire.FlagRetry},
		{Op: wire.OpAcquire, ID: 7, Key: []byte("s"), Slots: 3, Flags: wire.FlagContended},
		{Op: wire.OpAcquire, ID: 7, Key: []byte("r"), Flags: wire.FlagShared},
	}
	all := hello
	for i := range seeds {
		frame := wire.AppendRequest(nil, &seeds[i])
		f.Add(append(bytes.Clone(hello), frame...))
		f.Add(frame)
		all = append(all, frame...)
	}
	f.Add(all)
	f.Add(all[:len(all)-3])
	f.Add(append(bytes.Clone(hello), hello...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0x16, 3, 1, 0, 0xa5, 1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, sent []byte) { fuzzConnection(t, sent) })
}

func fuzzConnection(t *testing.T, sent []byte) {
	srv, ln := New(DefaultConfig(newNode(t))), newMemoryListener()
	fx := &fixture{t: t, node: srv.cfg.Node, srv: srv, ln: ln, dial: ln.dial}
	fx.run()
	defer fx.stop()
	c := fx.connect("fuzz")
	c.nc.Write(sent) // an error means that the server has heard enough
	c.nc.Write(bytes.Repeat([]byte{0xff}, 2*wire.MaxFrameBytes))
	replies, raw := c.ended()
	c.close()
	if raw != "" {
		if len(replies) > 0 || !strings.Contains(raw, "native protocol") {
			t.Fatalf("%v and then %q", replies, raw)
		}
		return
	}
	if len(replies) == 0 {
		t.Fatal("no reply")
	}
	for i, r := range replies {
		if fatal := r.Status == wire.StatusError && r.Code.Closes(); fatal != (i == len(replies)-1) {
			t.Fatalf("reply %d of %d: %v", i+1, len(replies), r)
		}
	}
	fx.stop()
	if n := fx.node.Status().Sessions; n != 0 {
		t.Fatalf("%d sessions are left", n)
	}
}
