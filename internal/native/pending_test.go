package native

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/wire"
)

// asked is one acquire of the naive model: a list, scanned for everything.
type asked struct {
	id     uint32
	key    string
	ref    ref
	queued bool   // waits in the table
	told   string // what the client is told; empty = not yet
	sent   bool
}

// pendingModel drives the bookkeeping of a connection that has no socket, and
// the model beside it.
type pendingModel struct {
	c     *conn
	asked []*asked
	token uint64
	got   []string
}

func newPendingModel() *pendingModel {
	srv := &Server{cfg: DefaultConfig(nil), messages: newMessages(time.Hour, 10), active: func() node.ActiveNode { return node.ActiveNode{Here: true} }}
	srv.cfg.MaxPending = 10
	return &pendingModel{c: &conn{srv: srv}}
}

func (m *pendingModel) ask(id uint32, key string) *asked {
	a := &asked{id: id, key: key, ref: m.c.nextRef(id)}
	m.asked = append(m.asked, a)
	return a
}

// reply makes one of the table's answers, and says what the client is to read.
func (m *pendingModel) reply(a *asked, code locks.Code) {
	m.token++
	r := locks.Reply{Ref: uint64(a.ref), Op: locks.OpAcquire, Code: code, Key: []byte(a.key), Token: locks.Token(m.token), Lease: time.Hour}
	if code == locks.Queued {
		a.queued = true
	} else {
		a.queued = false
		a.told = m.expected(a, code)
	}
	m.c.Push(&r)
	clear(r.Key) // it was only lent
}

func (m *pendingModel) expected(a *asked, code locks.Code) string {
	s := shapes[code]
	token := uint64(0)
	if code == locks.Granted {
		token = m.token
	}
	return told(a.id, a.key, s.status, s.code, token)
}

func told(id uint32, key string, status wire.Status, code wire.Code, token uint64) string {
	return fmt.Sprintf("%d %s %c %d %d", id, key, status, code, token)
}

// read takes what the connection would write.
func (m *pendingModel) read() {
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	for m.c.fillOutput() {
		b := m.c.out.begin()
		for at := b.start; at < b.end; {
			var r wire.Reply
			n, err := r.Decode(b.b[at:b.end])
			if err != nil || n == 0 {
				panic(err)
			}
			at += n
			m.got = append(m.got, told(r.ID, string(r.Key), r.Status, r.Code, r.Token))
		}
		m.c.out.wrote(b.writing)
	}
}

// want is what the model would write now: numbered answers as they come, those
// of ordered mode behind the ones before them. There is one answer between two
// looks, so all that goes out is of one key.
func (m *pendingModel) want() []string {
	var want []string
	blocked := map[string]bool{}
	for _, a := range m.asked {
		if a.told == "" {
			blocked[a.key] = blocked[a.key] || a.id == 0
		} else if !a.sent && (a.id != 0 || !blocked[a.key]) {
			a.sent = true
			want = append(want, a.told)
		}
	}
	return want
}

func (m *pendingModel) check(t *rapid.T) {
	m.read()
	want := m.want()
	got := m.got
	m.got = nil
	if !slices.Equal(got, want) {
		t.Fatalf("wrote %q, want %q", got, want)
	}
	m.checkCounts(t)
}

func (m *pendingModel) checkCounts(t *rapid.T) {
	var queued, held int
	var refs []ref
	oldest := map[uint32]ref{}
	waits := map[string]bool{}
	for _, a := range m.asked {
		switch {
		case a.queued:
			queued++
			refs = append(refs, a.ref)
			waits[a.key] = true
			if _, ok := oldest[a.id]; !ok {
				oldest[a.id] = a.ref
			}
		case a.told != "" && !a.sent:
			held++
		}
	}
	p := m.c.pending
	if p == nil {
		p = new(pending)
	}
	if p.queued != queued || p.order.held != held {
		t.Fatalf("%d queued and %d held, want %d and %d", p.queued, p.order.held, queued, held)
	}
	if all := p.all(); !slices.Equal(all, refs) {
		t.Fatalf("all: %x, want %x", all, refs)
	}
	for id := uint32(1); id < 4; id++ {
		r, ok := p.oldest(id)
		if want, there := oldest[id]; ok != there || r != want {
			t.Fatalf("oldest of id %d: %x %v, want %x %v", id, r, ok, want, there)
		}
	}
	for _, key := range modelKeys {
		if p.waitsFor([]byte(key)) != waits[key] {
			t.Fatalf("waitsFor(%s) is %v", key, !waits[key])
		}
	}
	if queued+held == 0 && (len(p.keys) != 0 || len(p.byID) != 0 || len(p.order.lines) != 0 || len(p.order.answers) != 0) {
		t.Fatalf("nothing is pending, but kept: %+v", p)
	}
}

var (
	modelKeys  = []string{"a", "b", "c"}
	modelIDs   = []uint32{0, 0, 0, 1, 2, 3}
	finalCodes = []locks.Code{locks.Granted, locks.NotGranted, locks.Cancelled, locks.Mismatch, locks.Moved}
)

func TestPendingModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newPendingModel()
		final := rapid.SampledFrom(finalCodes)
		ask := func(t *rapid.T) *asked {
			return m.ask(rapid.SampledFrom(modelIDs).Draw(t, "id"), rapid.SampledFrom(modelKeys).Draw(t, "key"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"waits":    func(t *rapid.T) { m.reply(ask(t), locks.Queued) },
			"at once":  func(t *rapid.T) { m.reply(ask(t), final.Draw(t, "code")) },
			"no reply": func(t *rapid.T) { m.read() },
			"answered": func(t *rapid.T) {
				var waiting []*asked
				for _, a := range m.asked {
					if a.queued {
						waiting = append(waiting, a)
					}
				}
				if len(waiting) == 0 {
					t.Skip("nobody waits")
				}
				m.reply(rapid.SampledFrom(waiting).Draw(t, "which"), final.Draw(t, "code"))
			},
			"": m.check,
		})
	})
}

// With 65,536 waiting, nothing is found by a scan: the cost of one answer does
// not grow with their number, even where the last one is answered first.
func BenchmarkAnswerTheLast(b *testing.B) {
	for _, id := range []uint32{0, 7} {
		b.Run(fmt.Sprintf("id=%d", id), func(b *testing.B) {
			const waiting = 65_536
			key := []byte("key")
			frame := wire.Reply{Op: wire.OpAcquire, Status: wire.StatusNotGranted, Key: key}
			var p *pending
			for i := range b.N {
				if i%waiting == 0 {
					b.StopTimer()
					p = new(pending)
					for n := range uint32(waiting) {
						p.queue(makeRef(n, id), key)
					}
					b.StartTimer()
				}
				r := makeRef(uint32(waiting-1-i%waiting), id)
				p.settle(r, key)
				if id == 0 {
					p.order.hold(r, &frame)
				}
			}
		})
	}
}

// The count in a ref wraps around; the order survives it, and the highest bit
// does not matter.
func TestRefOrder(t *testing.T) {
	const last = 1<<31 - 1
	for _, pair := range [][2]ref{
		{makeRef(1, 9), makeRef(2, 3)},
		{makeRef(last-1, 0), makeRef(last, 0)},
		{makeRef(last, 0), makeRef(last+1, 0)},
		{makeRef(last, 0), makeRef(last+5, 0)},
		{makeRef(7, 0) | triedBit, makeRef(8, 0)},
		{makeRef(7, 0), makeRef(8, 0) | triedBit},
	} {
		if !pair[0].before(pair[1]) || pair[1].before(pair[0]) || pair[0].before(pair[0]) {
			t.Errorf("%x is not before %x", pair[0], pair[1])
		}
	}
	if id := (makeRef(3, 1<<32-1) | triedBit).id(); id != 1<<32-1 {
		t.Errorf("id %d", id)
	}
}
