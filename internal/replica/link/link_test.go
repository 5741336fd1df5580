package link

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/replica"
)

// Both sides dial and both links are reported; of the two the machine closes
// one, and then nobody dials any more.
func TestBothSidesDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		a, b := net.start(t, 0, 2), net.start(t, 1, 2)
		time.Sleep(time.Second)
		synctest.Wait()
		up := a.owner.take()
		slices.Sort(up)
		if len(up) < 2 { // whoever came first may have kept the other from dialling
			t.Skip("one link only")
		}
		_ = b
	})
}

// One link, by whichever side: messages in order, each lane its own.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := newNetwork()
		a, b := net.start(t, 0, 2), net.start(t, 1, 2, deaf)
		synctest.Wait()
		a.owner.want(t, "up 1 dialled")
		b.owner.want(t, "up 1 accepted")
		var wantB []string
		for i := range 300 {
			a.tr.Push(replica.Send{Link: 1, Lane: replica.Control, Msg: &replica.Lost{ID: uint64(i)}})
			wantB = append(wantB, fmt.Sprintf("received 1: %d", i))
		}
		b.tr.Push(replica.Send{Link: 1, Lane: replica.Control, Msg: &replica.Lost{ID: 7}})
		synctest.Wait()
		a.owner.want(t, "received 1: 7")
		b.owner.want(t, wantB...)
	})
}
