package locks_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	. "holdfast/internal/locks"
)

func sameReplies(got, want []Reply) error {
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && sameReply(&got[i], &want[i]) {
			continue
		}
		return fmt.Errorf("reply %d:\n  table %s\n  model %s", i, replyAt(got, i), replyAt(want, i))
	}
	return nil
}

// inTokenOrder sorts the pushes that new waiters brought about: which holder
// is told first is nobody's business. Of a crowd of holders only some are told.
func inTokenOrder(replies []Reply, crowded func(key []byte) bool) []Reply {
	list := slices.DeleteFunc(slices.Clone(replies), func(r Reply) bool { return r.Code == ContendedPush && crowded(r.Key) })
	for i := 0; i < len(list); i++ {
		from := i
		for i < len(list) && list[i].Code == ContendedPush {
			i++
		}
		slices.SortFunc(list[from:i], func(a, b Reply) int { return cmp.Compare(a.Token, b.Token) })
	}
	return list
}

// positions forgives a Position that is too high because of those ahead who
// gave up, but not one that nobody stands at.
func positions(got, want []Reply, waiters func(key []byte) int) {
	for i := range min(len(got), len(want)) {
		g, w := &got[i], &want[i]
		if g.Code == Queued && g.Position > w.Position && int(g.Position) <= waiters(g.Key) {
			g.Position = w.Position
		}
	}
}

func replyAt(list []Reply, i int) string {
	if i >= len(list) {
		return "none"
	}
	return fmt.Sprintf("%+v", list[i])
}

func sameReply(a, b *Reply) bool {
	return a.To == b.To && a.Ref == b.Ref && a.Op == b.Op && a.Code == b.Code && a.Held == b.Held &&
		a.Reason == b.Reason && a.Slots == b.Slots && a.Waiters == b.Waiters && a.Position == b.Position &&
		a.Token == b.Token && a.Lease == b.Lease && a.Waited == b.Waited && a.Ticket == b.Ticket &&
		bytes.Equal(a.Key, b.Key)
}

func sameEvents(got, want []Event) error {
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && sameEvent(&got[i], &want[i]) {
			continue
		}
		return fmt.Errorf("event %d:\n  table %s\n  model %s", i, eventAt(got, i), eventAt(want, i))
	}
	return nil
}

func eventAt(list []Event, i int) string {
	if i >= len(list) {
		return "none"
	}
	return eventString(&list[i])
}

func eventString(e *Event) string {
	s := fmt.Sprintf("%+v", *e)
	if e.Origin != nil {
		s += fmt.Sprintf(" from %+v", *e.Origin)
	}
	return s
}

func sameEvent(a, b *Event) bool {
	return a.Kind == b.Kind && a.Flags == b.Flags && a.Reason == b.Reason && a.Slots == b.Slots &&
		a.Token == b.Token && a.Index == b.Index && a.Lease == b.Lease && a.Wait == b.Wait && a.Ticket == b.Ticket &&
		sameOrigin(a.Origin, b.Origin) && bytes.Equal(a.Key, b.Key)
}

func sameOrigin(a, b *Origin) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sameView(got, want KeyView) error {
	if got.Key == want.Key && got.Mode == want.Mode && got.Slots == want.Slots &&
		got.HoldersTotal == want.HoldersTotal && got.WaitersTotal == want.WaitersTotal &&
		slices.Equal(got.Holders, want.Holders) && slices.Equal(got.Waiters, want.Waiters) {
		return nil
	}
	return fmt.Errorf("view of %q:\n  got  %+v\n  want %+v", want.Key, got, want)
}
