package link

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		wake := make(chan struct{}, 1)
		const every = 2 * time.Millisecond
		if !p.due(every) {
			t.Error("the first message has to wait")
		}
		p.sent(100)
		if p.due(every) {
			t.Error("a small one is followed at once")
		}
		begin := time.Now()
		p.wait(wake)
		if waited := time.Since(begin); waited != every || !p.due(every) {
			t.Errorf("waited %v, want %v, and due then", waited, every)
		}
		p.sent(pieceBytes)
		if !p.due(every) {
			t.Error("a large one is followed only later")
		}
		p.sent(100)
		if !p.due(0) {
			t.Error("no pace, and yet it has to wait")
		}
		p.sent(100)
		time.Sleep(every)
		if !p.due(every) {
			t.Error("after a pause it still has to wait")
		}
		p.sent(100)
		p.due(every)
		wake <- struct{}{}
		begin = time.Now()
		if p.wait(wake); time.Since(begin) != 0 {
			t.Error("control has to wait for the pace of bulk")
		}
	})
}
