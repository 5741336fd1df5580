//go:build linux

package cluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

const (
	contested   = 4                     // keys that everybody wants
	pace        = 20 * time.Millisecond // of each worker: the machine has other work to do, and so have the nodes
	longHold    = 10 * time.Minute      // lease of the holds that stand through a whole test
	holdsPerOne = 5                     // such holds of each party
)

// load is clients of every kind at work on a cluster.
type load struct {
	*history
	t        *testing.T
	set      *set
	parties  []party
	names    []string
	lease    time.Duration // of the locks that come and go
	stop     context.CancelFunc
	ctx      context.Context
	workers  sync.WaitGroup
	standing []standing
}

// standing is a lock that is held through the whole test.
type standing struct {
	a    *attempt
	hold hold
}

// startLoad takes the locks that stand and then puts the clients to work. lease is that of the locks that come and go:
// after a crash that may lose a release, it says how long a key can be blocked.
func startLoad(t *testing.T, s *set, lease time.Duration) *load {
	t.Helper()
	l := &load{history: newHistory(), t: t, set: s, lease: lease}
	l.ctx, l.stop = context.WithCancel(context.Background())
	t.Cleanup(l.end)
	for i := range 2 {
		l.add(fmt.Sprintf("raw%d", i), newRaw(l.history, s, fmt.Sprintf("raw%d", i)))
		l.add(fmt.Sprintf("http%d", i), newHTTP(l.history, s, fmt.Sprintf("http%d", i)))
		p, err := newGo(l.history, s, fmt.Sprintf("go%d", i))
		if err != nil {
			t.Fatal(err)
		}
		l.add(fmt.Sprintf("go%d", i), p)
	}
	l.takeStanding()
	for i, p := range l.parties {
		for j := range 6 {
			l.workers.Go(func() { l.work(fmt.Sprintf("%s.%d", l.names[i], j), p, i+j) })
		}
	}
	l.more(t, 100)
	return l
}

func (l *load) add(name string, p party) {
	l.parties, l.names = append(l.parties, p), append(l.names, name)
}

func (l *load) takeStanding() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	for i, p := range l.parties {
		for j := range holdsPerOne {
			a, h, err := p.acquire(ctx, fmt.Sprintf("standing/%s/%d", l.names[i], j), longHold)
			if err != nil {
				l.t.Fatalf("%s: take a lock that stands: %v", l.names[i], err)
			}
			l.granted(a)
			l.standing = append(l.standing, standing{a, h})
		}
	}
}

// work takes and gives back keys, in turn one that others want and one of its own.
func (l *load) work(name string, p party, seed int) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for i := seed; ; i++ {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		key := fmt.Sprintf("own/%s/%d", name, i%50)
		if i%2 == 0 {
			key = fmt.Sprintf("contested/%d", i/2%contested)
		}
		l.turn(name, p, key, i)
	}
}

// turn is one lock from acquire to release; now and then it is extended, and released once more.
func (l *load) turn(name string, p party, key string, i int) {
	a, h, err := p.acquire(l.ctx, key, l.lease)
	if err != nil {
		l.trouble(name, "acquire "+key, err)
		return
	}
	a.client = name
	l.granted(a)
	if i%4 == 0 {
		l.judge(name, a, false, l.lease, func() (bool, bool, error) { return h.extend(l.ctx, l.lease) })
	}
	l.giveUp(a)
	l.judge(name, a, true, 0, func() (bool, bool, error) { return h.release(l.ctx) })
	if r, raw := h.(*rawHold); raw && i%8 == 0 {
		l.judge(name, a, true, 0, func() (bool, bool, error) { return r.release(l.ctx) })
	}
}

func (l *load) judge(name string, a *attempt, release bool, lease time.Duration, ask func() (bool, bool, error)) {
	v := verdict{key: a.key, token: a.token, release: release, lease: lease, asked: l.now()}
	var err error
	if v.holds, v.repeated, err = ask(); err != nil {
		l.trouble(name, "end or extend "+a.key, err)
		return
	}
	v.answered = l.now()
	l.judged(v)
}

func (l *load) trouble(name, what string, err error) {
	if l.ctx.Err() == nil {
		l.failed(name, "%s: %v", what, err)
	}
}

// audit extends every lock that stands: none of them has ended.
func (l *load) audit() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, s := range l.standing {
		v := verdict{key: s.a.key, token: s.a.token, lease: longHold, asked: l.now()}
		var err error
		if v.holds, v.repeated, err = s.hold.extend(ctx, longHold); err != nil {
			l.failed(s.a.client, "extend %s: %v", s.a.key, err)
			continue
		}
		v.answered = l.now()
		l.judged(v)
	}
}

// end stops the clients; all of their goroutines are gone then.
func (l *load) end() {
	l.stop()
	l.workers.Wait()
	for _, p := range l.parties {
		p.close()
	}
	l.parties = nil
}

// finish lets the clients go on for a while, audits what stands, stops, and checks all that was noted.
func (l *load) finish() {
	l.t.Helper()
	l.more(l.t, 300)
	l.audit()
	l.end()
	for _, f := range l.set.freezes(l.began) {
		l.declare(f)
	}
	l.check(l.t)
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, e := range l.errors {
		if i == 10 {
			l.t.Error("and more")
			break
		}
		l.t.Errorf("a client failed: %s", e)
	}
}
