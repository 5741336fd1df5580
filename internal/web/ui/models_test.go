package ui

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 0: "0 s", 900: "0 µs", 3 * time.Microsecond: "3 µs", 250 * time.Millisecond: "250 ms",
		time.Second: "1 s", 9990 * time.Millisecond: "9.9 s", 59 * time.Second: "59 s", time.Minute: "1 min",
		61 * time.Second: "1 min 1 s", 2*time.Hour + 5*time.Minute + time.Second: "2 h 5 min", 50 * time.Hour: "2 d 2 h", 24 * time.Hour: "1 d",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := number(n); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// Nothing in a text hides, and what is no trick stays as it is.
func TestRuns(t *testing.T) {
	for text, want := range map[string]string{
		"plain/key 1":       "plain/key 1",
		"ключ/钥匙/🔑":         "ключ/钥匙/🔑",
		"a\u202eb":          "a[U+202E]b",
		"\u200b":            "[U+200B]",
		"a\u00a0b":          "a[U+00A0]b",
		"a\u2028\u3164":     "a[U+2028][U+3164]",
		"\ufeffx\u00ad\x07": "[U+FEFF]x[U+00AD][U+0007]",
	} {
		var got strings.Builder
		for _, r := range runs(text) {
			if r.Code {
				fmt.Fprintf(&got, "[%s]", r.Text)
			} else {
				got.WriteString(r.Text)
			}
		}
		if got.String() != want {
			t.Errorf("%q: %q", text, got.String())
		}
	}
}

func TestForecast(t *testing.T) {
	holder := func(lease time.Duration) locks.HolderView { return locks.HolderView{Lease: lease} }
	waiter := func(owner string, wait time.Duration) locks.WaiterView {
		return locks.WaiterView{Origin: locks.Origin{Owner: owner}, Wait: wait}
	}
	for _, c := range []struct {
		view locks.KeyView
		want string
	}{
		{locks.KeyView{}, "Whoever asks for this key gets it at once."},
		{locks.KeyView{WaitersTotal: 1, Waiters: []locks.WaiterView{waiter("w", 0)}}, "It is about to be given to the first in line."},
		{locks.KeyView{HoldersTotal: 1, Holders: []locks.HolderView{holder(time.Minute)}},
			"If its holder does nothing, the lease runs out in 1 min, and the key is free then."},
		{locks.KeyView{HoldersTotal: 2, Holders: []locks.HolderView{holder(time.Hour), holder(time.Minute)}},
			"If its holders do nothing, the first lease runs out in 1 min, and the key is free then."},
		{locks.KeyView{HoldersTotal: 1, Holders: []locks.HolderView{holder(time.Minute)}, WaitersTotal: 1, Waiters: []locks.WaiterView{waiter("w", 0)}},
			"If its holder does nothing, the lease runs out in 1 min; then the first in line gets it: “w”."},
		{locks.KeyView{HoldersTotal: 1, Holders: []locks.HolderView{holder(time.Minute)}, WaitersTotal: 1, Waiters: []locks.WaiterView{waiter("w\u202e", time.Second)}},
			"If its holder does nothing, the lease runs out in 1 min; then the first in line gets it, unless it stops waiting before, in 1 s."},
	} {
		if got := forecast(&c.view); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestCharts(t *testing.T) {
	if c := charts(nil)[0]; !c.Empty || c.Summary != "Grants and releases: nothing measured yet." {
		t.Errorf("of nothing: %+v", c)
	}
	at := time.Date(2026, 12, 1, 16, 0, 0, 0, time.UTC)
	c := charts([]node.Sample{
		{At: at, Role: node.Standby, Held: 5},
		{At: at.Add(time.Second), Role: node.Active, Held: 5, Grants: 30, Releases: 7},
		{At: at.Add(2 * time.Second), Role: node.Active, Held: 5, Grants: 12},
	})
	if want := "Grants and releases in the last 3 s: grants 12/s now, at most 30/s; releases 0/s now, at most 7/s."; c[0].Summary != want {
		t.Errorf("it says %q", c[0].Summary)
	}
	if c[0].Lines[0].Path != "M598 100L599 40L600 76" || c[0].Top != "50/s" {
		t.Errorf("under %s it draws %s", c[0].Top, c[0].Lines[0].Path)
	}
	if len(c[0].Marks) != 1 || c[0].Marks[0] != (mark{"599", "active at 16:00:01"}) {
		t.Errorf("it marks %v", c[0].Marks)
	}
}

// Every type of notice has words of its own and a page that shows it.
func TestEveryNoticeHasItsPlace(t *testing.T) {
	for _, kindOf := range node.NoticeTypes() {
		if _, ok := meanings[kindOf]; !ok {
			t.Errorf("%v: no meaning", kindOf)
		}
		shown := 0
		for _, k := range kinds {
			if slices.Contains(k.types, kindOf) {
				shown++
			}
		}
		if shown != 1 {
			t.Errorf("%v: in %d kinds", kindOf, shown)
		}
	}
}

func TestEventOf(t *testing.T) {
	for _, c := range []struct {
		notice node.Notice
		text   string
	}{
		{node.Notice{Type: node.NoticeRole, Role: node.Active, Text: "the active is silent"}, "became active: the active is silent"},
		{node.Notice{Type: node.NoticePeer, Node: "n2", Text: "peer-down"}, "n2: peer-down"},
		{node.Notice{Type: node.NoticeExpired}, "the lease ran out"},
		{node.Notice{Type: node.NoticeRelease, Text: "withdrawn"}, "released: withdrawn"},
		{node.Notice{Type: node.NoticeOperator, Action: "handoff"}, "handoff"},
	} {
		if got := eventOf(&c.notice).Text; got != c.text {
			t.Errorf("%+v: %q", c.notice, got)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, .0012: .002, 1: 1, 3: 5, 6: 10, 10: 10, 1499: 2000} {
		if got := roundUp(v); got != want {
			t.Errorf("%v: %v", v, got)
		}
	}
}

func TestBehind(t *testing.T) {
	self := node.Member{Name: "n2", Self: true, Synced: true, Epoch: 8, Seq: 10}
	for _, c := range []struct {
		active node.Member
		change func(*node.Member)
		want   string
	}{
		{node.Member{Name: "n1", Epoch: 8, Seq: 10}, nil, "in step"},
		{node.Member{Name: "n1", Epoch: 8, Seq: 11}, nil, "1 event behind"},
		{node.Member{Name: "n1", Epoch: 8, Seq: 1210}, nil, "1,200 events behind"},
		{node.Member{Name: "n1", Epoch: 16, Seq: 10}, nil, "not in step"},
		{node.Member{Name: "n1", Epoch: 8, Seq: 10}, func(m *node.Member) { m.Synced = false }, "not in step"},
	} {
		own := self
		if c.change != nil {
			c.change(&own)
		}
		if got := behind([]node.Member{c.active, own}, "n1"); got != c.want {
			t.Errorf("%+v: %s", c.active, got)
		}
	}
}

func TestLimitRows(t *testing.T) {
	st := node.Status{Stats: locks.Stats{Keys: 80, Waiters: 79, KeyBytes: 3 << 20}, Sessions: 1}
	rows := limitRows(&st, &locks.Config{MaxKeys: 100, MaxWaiters: 100, MaxKeyBytes: 1 << 30}, 0)
	if !rows[0].High || rows[0].Share != 80 || rows[2].High || rows[1].Used != "3.0 MiB" || rows[3].Share != 0 {
		t.Errorf("got %+v", rows)
	}
}

// The list of clients keeps its true total, whatever is shown of it.
func TestClientsPage(t *testing.T) {
	now := time.Now()
	var clients []node.Client
	for i := range 700 {
		clients = append(clients, node.Client{
			Session: locks.Session(i + 1), Since: now.Add(-time.Duration(i) * time.Second),
			Origin: locks.Origin{Owner: fmt.Sprintf("w-%03d", i), Remote: fmt.Sprintf("10.0.0.%d:1", i%250)},
		})
	}
	p := clientsPageOf(url.Values{}, append([]node.Client(nil), clients...), now)
	if p.Total != "700" || p.Shown != "500" || len(p.Rows) != 500 || p.Rows[0].Owner[0].Text != "w-699" {
		t.Errorf("%s, %s, first %+v", p.Total, p.Shown, p.Rows[0])
	}
	p = clientsPageOf(url.Values{"q": {"10.0.0.7:"}, "sort": {"owner"}}, clients, now)
	if p.Total != "3" || p.Rows[0].Owner[0].Text != "w-007" || p.Columns[0].Sort != "ascending" || p.Columns[4].Sort != "none" {
		t.Errorf("%s, first %+v, %+v", p.Total, p.Rows[0], p.Columns)
	}
}
