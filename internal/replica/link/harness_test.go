package link

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"holdfast/internal/replica"
)

const secret = "correct horse battery"

// network is a network in memory, for synctest bubbles: every connection is a
// net.Pipe, which holds nothing: a write waits for its reader.
type network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	dials     []time.Time // beginnings
	to        []string    // of each dial
	silent    map[string]bool
	cut       map[string]int // so many dials get a connection that is cut
	gate      chan struct{}  // if not nil, dials wait for it to be closed
}

func newNetwork() *network {
	return &network{listeners: map[string]*listener{}, silent: map[string]bool{}, cut: map[string]int{}}
}

// dial is Config.Dial. Where nobody listens it is refused.
func (n *network) dial(ctx context.Context, addr string) (net.Conn, error) {
	n.mu.Lock()
	n.dials, n.to = append(n.dials, time.Now()), append(n.to, addr)
	gate := n.gate
	n.mu.Unlock()
	if gate != nil {
		<-gate
	}
	n.mu.Lock()
	ln, silent := n.listeners[addr], n.silent[addr]
	n.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if n.takeCut(addr) {
		here, there := net.Pipe()
		go func() {
			there.Read(make([]byte, 16<<10)) // the request: it went out, and nothing comes back
			there.Close()
		}()
		return here, nil
	}
	if ln == nil {
		return nil, syscall.ECONNREFUSED
	}
	here, there := net.Pipe()
	select {
	case ln.conns <- there:
		return here, nil
	case <-ln.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// takeCut counts down the dials of addr that get a connection which is cut.
func (n *network) takeCut(addr string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[addr] == 0 {
		return false
	}
	n.cut[addr]--
	return true
}

// dialled is how often addr was dialled.
func (n *network) dialled(addr string) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, to := range n.to {
		if to == addr {
			count++
		}
	}
	return count
}

func (n *network) listen(addr string) *listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	ln := &listener{n: n, addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.listeners[addr] = ln
	return ln
}

type listener struct {
	n      *network
	addr   string
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.n.mu.Lock()
		delete(l.n.listeners, l.addr)
		l.n.mu.Unlock()
	})
	return nil
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.addr, Net: "pipe"} }

// owner records what it is told, and does what a test wants done.
type owner struct {
	mu   sync.Mutex
	told []string
	on   func(in replica.Input) // called under the mutex, like a node's actions
}

func (o *owner) Step(in replica.Input) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told = append(o.told, describe(in))
	if o.on != nil {
		o.on(in)
	}
}

// then says what happens from here on at each step.
func (o *owner) then(on func(in replica.Input)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on = on
}

func describe(in replica.Input) string {
	switch in := in.(type) {
	case replica.LinkUp:
		if in.Dialled {
			return fmt.Sprintf("up %d dialled", in.Link)
		}
		return fmt.Sprintf("up %d accepted", in.Link)
	case replica.LinkDown:
		return fmt.Sprintf("down %d", in.Link)
	case replica.DialFailed:
		if in.Refused {
			return fmt.Sprintf("dial %d refused", in.Peer)
		}
		if in.Rejected {
			return fmt.Sprintf("dial %d rejected", in.Peer)
		}
		return fmt.Sprintf("dial %d failed", in.Peer)
	case replica.Pull:
		return fmt.Sprintf("pull %d", in.Link)
	case replica.Received:
		msg, err := replica.DecodeMessage(in.Data)
		switch msg := msg.(type) {
		case *replica.Lost:
			return fmt.Sprintf("received %d: %d", in.Link, msg.ID)
		case *replica.OfferChunk:
			return fmt.Sprintf("received %d: %d with %d bytes", in.Link, msg.ID, len(msg.Events))
		}
		return fmt.Sprintf("received %d: %T %v", in.Link, msg, err)
	}
	return fmt.Sprintf("%T", in)
}

// take returns what was told since the last call, what happens at the same time in one order.
func (o *owner) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := o.told
	o.told = nil
	return told
}

// want compares what an owner was told.
func (o *owner) want(t *testing.T, want ...string) {
	t.Helper()
	if got := o.take(); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// wantLinks is want, but for dials that failed.
func (o *owner) wantLinks(t *testing.T, want ...string) {
	t.Helper()
	got := slices.DeleteFunc(o.take(), func(s string) bool { return strings.HasPrefix(s, "dial ") })
	if !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// text is a log.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (x *text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.Write(b)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.buf.String()
}

// node is one node: a transport behind an HTTP server.
type node struct {
	t      *testing.T
	net    *network
	rank   int
	cfg    Config
	tr     *Transport
	owner  *owner
	log    *text
	server *http.Server
	served chan error
	cancel context.CancelFunc
	ran    chan error
}

func addr(rank int) string { return fmt.Sprintf("n%d:7621", rank) }

func list(n int) (peers []Peer) {
	for i := range n {
		peers = append(peers, Peer{Name: fmt.Sprintf("n%d", i), URL: "http://" + addr(i)})
	}
	return peers
}

// start starts node rank of a list of n, configured further by the options, in a bubble.
func (n *network) start(t *testing.T, rank, size int, options ...func(*Config)) *node {
	t.Helper()
	x := &node{t: t, net: n, rank: rank, owner: &owner{}, log: &text{}, served: make(chan error, 1), ran: make(chan error, 1)}
	x.cfg = Config{
		Rank: replica.Rank(rank), Peers: list(size), Secrets: func() []string { return []string{secret} }, Timeout: time.Second,
		Log: slog.New(slog.NewTextHandler(x.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Dial: n.dial,
	}
	for _, o := range options {
		o(&x.cfg)
	}
	tr, err := New(x.cfg)
	if err != nil {
		t.Fatal(err)
	}
	x.tr = tr
	mux := http.NewServeMux()
	mux.Handle(Path, tr)
	x.server = &http.Server{Handler: mux, ErrorLog: slog.NewLogLogger(x.cfg.Log.Handler(), slog.LevelError)}
	ln := n.listen(addr(rank))
	ctx, cancel := context.WithCancel(context.Background())
	x.cancel = cancel
	go func() { x.ran <- tr.Run(ctx, x.owner) }()
	go func() { x.served <- x.server.Serve(ln) }()
	t.Cleanup(x.stop)
	synctest.Wait() // it runs, and listens
	return x
}

// stop may be called twice.
func (x *node) stop() {
	if x.cancel == nil {
		return
	}
	x.cancel()
	x.cancel = nil
	if err := <-x.ran; err != nil {
		x.t.Errorf("n%d: Run: %v", x.rank, err)
	}
	x.server.Close()
	<-x.served
	if strings.Contains(x.log.String(), secret) {
		x.t.Errorf("n%d: the secret is in the log:\n%s", x.rank, x.log)
	}
}

// kill ends a node as the end of its process would: first nobody listens, then
// its connections are gone.
func (x *node) kill() {
	x.server.Close()
	x.tr.mu.Lock()
	links := slices.Collect(maps.Values(x.tr.links))
	x.tr.mu.Unlock()
	for _, c := range links {
		c.raw.Close()
	}
	x.stop()
}

// logs fails unless the log has a line with all of the parts.
func (x *node) logs(parts ...string) {
	x.t.Helper()
lines:
	for line := range strings.Lines(x.log.String()) {
		for _, p := range parts {
			if !strings.Contains(line, p) {
				continue lines
			}
		}
		return
	}
	x.t.Errorf("n%d: no line with %q in the log:\n%s", x.rank, parts, x.log)
}

func secrets(s ...string) func(*Config) {
	return func(c *Config) { c.Secrets = func() []string { return s } }
}

// deaf keeps a node from dialling, so that a test sees one link.
func deaf(c *Config) {
	c.Dial = func(ctx context.Context, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// guest is a peer played by the test: a connection and what it does on it.
type guest struct {
	t   *testing.T
	raw net.Conn
	ws  *websocket.Conn
	q   request
	a   answer
}

// knock sends an upgrade request with the given headers. Without an upgrade ws
// is nil and the answer's status and text say why.
func (n *network) knock(t *testing.T, addr string, h http.Header) (g *guest, status int, text string) {
	t.Helper()
	nc, err := n.dial(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	ws, resp, err := websocket.Dial(t.Context(), "http://"+addr+Path, &websocket.DialOptions{
		HTTPClient: clientOn(nc), HTTPHeader: h, CompressionMode: websocket.CompressionContextTakeover,
	})
	if resp == nil {
		t.Fatal(err)
	}
	if err != nil {
		body, _ := io.ReadAll(resp.Body)
		return nil, resp.StatusCode, strings.TrimSpace(string(body))
	}
	if x := resp.Header.Get("Sec-WebSocket-Extensions"); x != "" {
		t.Errorf("negotiated %q; compression must be off", x)
	}
	b, err := decodeHeader(resp.Header.Values(header), maxAnswerBytes)
	if err != nil {
		t.Fatal(err)
	}
	a, err := decodeAnswer(b)
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	return &guest{t: t, raw: nc, ws: ws, a: a}, resp.StatusCode, ""
}

func proofHeader(raw []byte) http.Header {
	return http.Header{header: {encoding.EncodeToString(raw)}}
}

// greet knocks with a good first proof.
func (n *network) greet(t *testing.T, addr, from, to string) *guest {
	t.Helper()
	raw := appendRequest(nil, secret, time.Now().UnixMilli(), from, to)
	g, status, text := n.knock(t, addr, proofHeader(raw))
	if g == nil {
		t.Fatalf("answered %d %s", status, text)
	}
	g.q.raw = raw
	return g
}

// visit makes a link, by hand.
func (n *network) visit(t *testing.T, addr, from, to string) *guest {
	t.Helper()
	g := n.greet(t, addr, from, to)
	g.write(websocket.MessageBinary, prove(secret, diallerLabel, g.q.raw, g.a.raw))
	if mac := g.read(); !fits([]string{secret}, mac, acceptorLabel, g.q.raw, g.a.raw) {
		t.Fatalf("the acceptor's proof is %x", mac)
	}
	return g
}

func (g *guest) write(kind websocket.MessageType, b []byte) {
	g.t.Helper()
	if err := g.ws.Write(g.t.Context(), kind, b); err != nil {
		g.t.Fatal(err)
	}
}

func (g *guest) read() []byte {
	g.t.Helper()
	_, b, err := g.ws.Read(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	return b
}

// closed reads up to the close frame and returns what it says.
func (g *guest) closed() string {
	g.t.Helper()
	for {
		_, _, err := g.ws.Read(g.t.Context())
		if said, ok := errors.AsType[websocket.CloseError](err); ok {
			return fmt.Sprintf("%d %s", said.Code, said.Reason)
		}
		if err != nil {
			return "broken"
		}
	}
}

// piece sends a piece of a stream.
func (g *guest) piece(kind byte, stream []byte) {
	g.t.Helper()
	g.write(websocket.MessageBinary, append([]byte{kind}, stream...))
}

// stream is messages as they stand in a stream.
func stream(msgs ...replica.Message) (b []byte) {
	for _, m := range msgs {
		at := len(b)
		b = replica.AppendMessage(append(b, 0, 0, 0, 0), m)
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-lengthBytes))
	}
	return b
}
