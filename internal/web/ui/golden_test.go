package ui

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/a-h/templ"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func frameAt(page, title string) frame {
	return frame{
		Title: title, Page: page, Node: "n1", Role: badge{"active", "active"}, Epoch: "4096", Theme: "system", Back: "/ui/x?a=1&b=<2>",
		Now: momentOf(noon), Version: "v0.2.0", Live: true, now: noon,
	}
}

const trick = "<b>\"'&\u202e"

// keyModel has a hostile name, owner and identity, a holder and two waiters.
func keyModel() keyPage {
	v := locks.KeyView{
		Key: trick, Mode: locks.ModeExclusive, Slots: 1, HoldersTotal: 1, WaitersTotal: 2,
		Holders: []locks.HolderView{{
			Origin: locks.Origin{Owner: trick, Remote: "10.0.0.1:1", Transport: "native", Identity: "<i>"},
			Token:  4104, Since: 0, Lease: 3 * time.Second,
		}},
		Waiters: []locks.WaiterView{
			{Origin: locks.Origin{Owner: "w"}, Ticket: locks.Ticket{1}, Position: 1, Wait: time.Minute, Connected: true},
			{Position: 2, Shared: true},
		},
	}
	p := keyPageOf(&v, locks.Time(9*time.Second), true, true)
	p.frame, p.NoEvents = frameAt("locks", "Key"), "Nothing is remembered of this key."
	p.Flash = &flash{"good", "The lock was taken from its holder:", runs(trick)}
	return p
}

// TestGolden holds each component to a file; -rewrite writes them, and the
// difference is for reading.
func TestGolden(t *testing.T) {
	event := eventRowOf(&Event{
		Seq: 7, At: noon.Add(-time.Minute), Kind: "operator", Weight: Warning, Key: trick, Owner: trick, Token: 4104, Text: "forced release",
		Who: "olga", From: "10.0.0.9:1", Why: trick, Result: "done", Gap: 3,
	}, noon)
	key := keyModel()
	for name, component := range map[string]templ.Component{
		"frame": page(frameAt("overview", "Overview")),
		"frame-replica": page(func() frame {
			f := frameAt("", "Replica")
			f.Live, f.Limited, f.Who, f.Theme = false, true, "<olga>", "dark"
			f.Role = badge{"standby", "standby"}
			f.Replica = &replicaNote{"3 events behind", "n2", "http://10.0.0.2:7621/ui/x?a=1&b=2"}
			return f
		}()),
		"text":        text(runs(trick)),
		"tile":        tileView(tile{"Held", "1,234", "on 99 keys", "/ui/locks?state=held"}),
		"chart":       chartView(charts([]node.Sample{{At: noon, Role: node.Standby}, {At: noon.Add(time.Second), Role: node.Active, Grants: 3}})[0]),
		"empty-chart": chartView(charts(nil)[0]),
		"nodes": nodesTable(nodeRows([]node.Member{
			{Rank: 0, Name: "n1", Self: true, Alive: true, Role: node.Active, Synced: true, Epoch: 8, Seq: 1200, Since: noon.Add(-time.Hour), Reason: "started"},
			{Rank: 1, Name: "n2", Refused: "another secret", HTTP: []string{"http://10.0.0.2:7621"}},
		}, noon, false)),
		"standout": standoutView(standout{"Held longest", "", []standoutRow{{runs(trick), keyURL(trick), runs(trick), "3 s"}}, "/ui/locks"}),
		"key-row": keyRowView(keyRowOf(&locks.Row{
			Key: trick, Owner: trick, Token: 4104, Holders: 3, Slots: 4, Mode: locks.ModeSemaphore, LeaseEnds: locks.Time(12 * time.Second), Waiters: 2,
		}, locks.Time(9*time.Second), true)),
		"heads":   heads(headers(parseKeysQuery(map[string][]string{"sort": {"lease"}, "q": {"a&b"}}, false), false)),
		"key":     keyView(key),
		"events":  eventTable([]eventRow{event}, "Events", true),
		"force":   forceView(forcePage{frame: frameAt("locks", "Force release"), Key: runs(trick), Raw: trick, KeyURL: keyURL(trick), Token: "4104", Owner: runs(trick), Problem: "No.", Reason: trick, Typed: trick, Changed: true}),
		"remove":  removeView(removePage{frame: frameAt("locks", "Remove waiter"), Key: runs(trick), Raw: trick, KeyURL: keyURL(trick), Ticket: "01", Owner: runs(trick)}),
		"limits":  nodeView(nodePage{frame: frameAt("node", "This node"), Limits: limitRows(&node.Status{Stats: locks.Stats{Keys: 9}}, &locks.Config{MaxKeys: 10}, 5), Settings: []Setting{{"HOLDFAST_X", "<x>", "environment"}}}),
		"denied":  deniedView("system"),
		"help":    helpKeys(),
		"missing": noticeView(notice{frame: frameAt("", "Not found"), Text: "There is no page.", Of: runs(trick), Link: "/", Go: "Overview"}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, component) })
	}
}

// between breaks a page into lines, so that a difference can be read.
var between = regexp.MustCompile(`(</[a-z0-9]+>|<[a-z][^>]*>)(<)`)

func golden(t *testing.T, name string, component templ.Component) {
	t.Helper()
	var b bytes.Buffer
	if err := component.Render(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	got := b.Bytes()
	for range 2 { // matches next to each other share a tag
		got = between.ReplaceAll(got, []byte("$1\n$2"))
	}
	file := filepath.Join("testdata", name+".html")
	if *rewrite {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("%s is out of date (go test -rewrite, then read the difference); got\n%s", file, got)
	}
	if bytes.Contains(got, []byte("<b>")) || bytes.Contains(got, []byte("\u202e")) && name != "key" && name != "force" && name != "remove" {
		t.Error("what a client chose is not shown as text")
	}
}
