package ui_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// accessible is what the accessibility tree says of one element.
type accessible struct{ role, name string }

// tree returns the page as assistive technology is told of it.
func (b *tab) tree() (all []accessible) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	err := chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		got, err := cdp.Call(ctx, t, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
		for _, n := range got.Nodes {
			if !n.Ignored {
				all = append(all, accessible{said(n.Role), said(n.Name)})
			}
		}
		return err
	}))
	if err != nil {
		b.t.Fatalf("read the accessibility tree: %v", err)
	}
	return all
}

func said(v *accessibility.Value) (text string) {
	if v != nil {
		json.Unmarshal([]byte(v.Value), &text) // what is no text has none
	}
	return text
}

// controls are the roles of what a person can do something with.
var controls = []string{"link", "button", "textbox", "searchbox", "combobox", "spinbutton", "image", "img", "table", "region", "navigation", "form", "search"}

// checkAccess finds what assistive technology would not know what to do with:
// everything that can be used has a name, every page its heading and its parts,
// and tables their headers.
func (b *tab) checkAccess(page string) {
	b.t.Helper()
	roles := map[string]int{}
	for _, n := range b.tree() {
		roles[n.role]++
		if slices.Contains(controls, n.role) && n.name == "" {
			b.t.Errorf("%s: a %s has no name", page, n.role)
		}
	}
	for _, role := range []string{"main", "banner", "contentinfo"} {
		if roles[role] != 1 {
			b.t.Errorf("%s: %d of %s", page, roles[role], role)
		}
	}
	if n := eval[int](b, "document.querySelectorAll('h1').length"); n != 1 {
		b.t.Errorf("%s: %d headings of the first order", page, n)
	}
	if roles["columnheader"] < 3*roles["table"] {
		b.t.Errorf("%s: %d tables with %d column headers", page, roles["table"], roles["columnheader"])
	}
	if bare := eval[int](b, "document.querySelectorAll('tbody tr:not(.gap):not(:has(th[scope=row])):not(.events tr)').length"); bare != 0 {
		b.t.Errorf("%s: %d rows without a header", page, bare)
	}
}

// The sorted column says so, and which way; following its link turns it round.
func TestSortState(t *testing.T) {
	s := newStage(t, nil)
	s.hold("a", time.Hour)
	s.hold("b", time.Hour)
	b := open(t, s)
	const sorted = `[...document.querySelectorAll("th[aria-sort]")].filter((th) => th.getAttribute("aria-sort") !== "none").map((th) => th.innerText.trim() + " " + th.getAttribute("aria-sort"))`
	for _, path := range []string{"/ui/locks", "/ui/clients"} {
		b.visit(path)
		first := eval[[]string](b, sorted)
		b.load(click("th[aria-sort]:not([aria-sort=none]) a"))
		second := eval[[]string](b, sorted)
		if len(first) != 1 || len(second) != 1 || first[0] == second[0] {
			t.Errorf("%s: sorted by %v, then by %v", path, first, second)
		}
	}
	b.visit("/ui/locks")
	b.load(click("th[aria-sort]:nth-child(7) a"))
	if got := fmt.Sprint(eval[[]string](b, sorted)); got != "[Waiters descending]" {
		t.Errorf("sorted by %s", got)
	}
}

// The skip link is the first thing that Tab reaches, and leads to the content.
func TestSkipLink(t *testing.T) {
	b := open(t, newStage(t, nil))
	b.visit("/ui/node")
	b.run(press("\t"))
	if at := eval[string](b, "document.activeElement.innerText"); at != "Skip to the content" {
		t.Errorf("Tab reaches %q first", at)
	}
	b.run(press("\r"))
	if at := eval[string](b, "document.activeElement.id"); at != "main" {
		t.Errorf("it leads to %q", at)
	}
}
