package replica

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestLogAgainstList runs the ring beside a list of all events.
func TestLogAgainstList(t *testing.T) {
	for seed := range uint64(200) {
		if err := compareLog(rand.New(rand.NewPCG(seed, 0))); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

type listed struct {
	at    Position
	event string
}

func compareLog(r *rand.Rand) error {
	l := newEventLog(1 << 10)
	pos := Position{5, Seq(r.IntN(3))}
	l.reset(pos, nil)
	ends := map[Epoch]Position{5: {}}
	var list []listed
	for step := range 400 {
		switch r.IntN(12) {
		case 0:
			ends[pos.Epoch+1] = pos
			pos = Position{Epoch: pos.Epoch + 1}
			l.open(pos.Epoch, nil)
			fallthrough
		default:
			var run []byte
			for range 1 + r.IntN(4) {
				pos.Seq++
				e := fmt.Sprintf("%d.%d.%0*d", pos.Epoch, pos.Seq, r.IntN(40), 0)
				list = append(list, listed{pos, e})
				run = AppendEvent(run, []byte(e))
			}
			l.append(run)
		}
		if step%10 == 0 {
			if err := readAll(r, &l, list, ends); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
	}
	return nil
}

// readAll reads the log from a position of the list to its end.
func readAll(r *rand.Rand, l *eventLog, list []listed, ends map[Epoch]Position) error {
	i := len(list) - 1 - r.IntN(min(len(list), 40))
	c, ok := l.find(list[i].at)
	if !ok {
		if int64(len(list)-1-i) <= l.head.index-l.tail.index {
			return fmt.Errorf("%v is not found, though its successor is kept", list[i].at)
		}
		return nil
	}
	at := list[i].at
	for _, want := range list[i+1:] {
		p, next, ok := l.read(c, 1<<62, 1, nil)
		if !ok {
			return fmt.Errorf("lost at %v", at)
		}
		e, rest, _ := NextEvent(p.events)
		if string(e) != want.event || len(rest) != 0 || (Position{p.epoch, p.first}) != want.at {
			return fmt.Errorf("after %v: read %s at %d/%d, want %s at %v", at, e, p.epoch, p.first, want.event, want.at)
		}
		if p.first == 1 && p.prev != ends[p.epoch] {
			return fmt.Errorf("reign %d follows %v, want %v", p.epoch, p.prev, ends[p.epoch])
		}
		c, at = next, want.at
	}
	if c != l.head {
		return fmt.Errorf("the list ends at %v, the log does not", at)
	}
	return nil
}

func TestLogRunLargerThanTheLog(t *testing.T) {
	l := newEventLog(1 << 10)
	l.reset(Position{1, 0}, nil)
	l.append(AppendEvent(nil, []byte("a")))
	if n, ok := l.append(AppendEvent(nil, make([]byte, 2<<10))); n != 1 || !ok {
		t.Fatalf("%d, %v", n, ok)
	}
	if _, ok := l.find(Position{1, 1}); ok {
		t.Error("what was not kept is found")
	}
	if c, ok := l.find(Position{1, 2}); !ok || c != l.head {
		t.Error("the head is not found")
	}
}

func BenchmarkLogAppend(b *testing.B) {
	l := newEventLog(1 << 20)
	l.reset(Position{1, 0}, nil)
	run := AppendEvent(nil, make([]byte, 60))
	b.ReportAllocs()
	for b.Loop() {
		l.append(run)
	}
}
