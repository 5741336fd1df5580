//go:build linux

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy is the way by which one node dials another. It can hold up, delay and cut what it carries.
type proxy struct {
	addr   string // where it listens
	target string
	ln     net.Listener
	ways   [2]*way // 0: from the dialler to the target
	run    sync.WaitGroup

	mu    sync.Mutex // guards what follows
	conns map[net.Conn]bool
	cut   bool
}

// way is one direction of a proxy.
type way struct {
	mu      sync.Mutex // guards what follows
	held    bool       // what comes stays
	jitter  time.Duration
	changed chan struct{}
}

func newWay() *way { return &way{changed: make(chan struct{})} }

func (w *way) set(held bool, jitter time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held, w.jitter = held, jitter
	close(w.changed)
	w.changed = make(chan struct{})
}

// pass returns when the next piece may go on.
func (w *way) pass(end <-chan struct{}) {
	for {
		w.mu.Lock()
		held, jitter, changed := w.held, w.jitter, w.changed
		w.mu.Unlock()
		if held {
			select {
			case <-changed:
				continue
			case <-end:
				return
			}
		}
		if jitter > 0 {
			timer := time.NewTimer(rand.N(jitter))
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-end:
			}
		}
		return
	}
}

func newProxy(t *testing.T, addr, target string) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: addr, target: target, ln: ln, ways: [2]*way{newWay(), newWay()}, conns: map[net.Conn]bool{}}
	p.run.Go(p.accept)
	t.Cleanup(func() {
		ln.Close()
		p.setCut(true)
		p.run.Wait()
	})
	return p
}

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.run.Go(func() { p.serve(c) })
	}
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	far, err := net.DialTimeout("tcp", p.target, dialLimit)
	if err != nil {
		return
	}
	defer far.Close()
	if !p.keep(c, far) {
		return
	}
	end := make(chan struct{})
	var both sync.WaitGroup
	var once sync.Once
	over := func() { once.Do(func() { close(end); c.Close(); far.Close() }) }
	both.Go(func() { defer over(); p.ways[0].carry(far, c, end) })
	both.Go(func() { defer over(); p.ways[1].carry(c, far, end) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	delete(p.conns, far)
}

// carry copies in pieces of any size, as networks do.
func (w *way) carry(to, from net.Conn, end <-chan struct{}) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf[:1+rand.N(len(buf))])
		if n > 0 {
			w.pass(end)
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		return false
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

// setCut breaks what is there and lets nothing through, or lets it again.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	if cut {
		for c := range p.conns {
			c.Close()
		}
	}
}

// proxied is a cluster whose nodes reach each other through proxies only.
type proxied struct {
	*set
	ways map[[2]int]*proxy // by who dials whom
}

func newProxied(t *testing.T, n int, env ...string) *proxied {
	t.Helper()
	at := clusters.Add(1)
	var hosts []string
	for i := range n {
		hosts = append(hosts, loopback(at, i))
	}
	p := &proxied{newSetAt(t, hosts, env...), map[[2]int]*proxy{}}
	at = clusters.Add(1)
	for i, from := range p.nodes {
		var list []string
		for j, to := range p.nodes {
			url := to.url()
			if i != j {
				addr := loopback(at, i*n+j) + ":" + httpPort
				p.ways[[2]int{i, j}] = newProxy(t, addr, to.host+":"+httpPort)
				url = "http://" + addr
			}
			list = append(list, to.name+"="+url)
		}
		from.setting("HOLDFAST_PEERS", strings.Join(list, ","))
		from.setting("HOLDFAST_ADVERTISE_HTTP", from.url())
		from.setting("HOLDFAST_ADVERTISE_NATIVE", from.native())
	}
	return p
}

// hold keeps back, or lets go, what one node says to another, whichever of them dialled.
func (p *proxied) hold(from, to int, held bool) {
	p.ways[[2]int{from, to}].ways[0].set(held, 0)
	p.ways[[2]int{to, from}].ways[1].set(held, 0)
}

// jitter delays every piece between any two nodes by up to d.
func (p *proxied) jitter(d time.Duration) {
	for _, one := range p.ways {
		one.ways[0].set(false, d)
		one.ways[1].set(false, d)
	}
}

// cut breaks the link between two nodes, or lets it come to be again.
func (p *proxied) cut(a, b int, cut bool) {
	p.ways[[2]int{a, b}].setCut(cut)
	p.ways[[2]int{b, a}].setCut(cut)
}

// awaitPeer waits for the next line after mark that says so of a peer.
func (n *node) awaitPeer(peer *node, event string, mark int) {
	n.t.Helper()
	n.life.awaitLine(n.t, fmt.Sprintf("%s: %s of %s", n.name, event, peer.name), mark, func(l line) bool {
		return l.Event == event && l.Peer == peer.name
	})
}
