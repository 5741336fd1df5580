package ui_test

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "a directory for a picture of every page: make screenshots")

// views are the pages, with the names of their pictures.
func views(s *stage) []struct{ name, path string } {
	report := url.Values{"key": {"nightly/report"}, "token": {tokenOf(s, "nightly/report")}}.Encode()
	return []struct{ name, path string }{
		{"overview", "/"},
		{"keys", "/ui/locks"},
		{"keys-filtered", "/ui/locks?q=*service*&sort=lease&order=desc&min_waiters=1"},
		{"key", "/ui/lock?key=" + url.QueryEscape("nightly/report")},
		{"key-free", "/ui/lock?key=nobody"},
		{"key-hostile", "/ui/lock?key=" + url.QueryEscape(hostile[4])},
		{"force", "/ui/force?" + report},
		{"force-changed", "/ui/force?key=nightly%2Freport&token=16"},
		{"remove", "/ui/remove?" + url.Values{"key": {"nightly/report"}, "ticket": {"30303030303030303030303030303034"}}.Encode()},
		{"events", "/ui/events"},
		{"clients", "/ui/clients"},
		{"node", "/ui/node"},
		{"help", "/ui/help"},
		{"missing", "/ui/nothing"},
	}
}

// settled is true once a page has loaded and, where it is kept up to date, is.
const settled = `document.readyState === "complete" && (!document.getElementById("pill") || document.getElementById("pill").dataset.state === "live")`

// faint are the texts whose contrast with what is behind them is below 4.5.
const faint = `(() => {
	const rgb = (text) => text.match(/[\d.]+/g).map(Number);
	const light = (c) => {
		const [r, g, b] = c.map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const c = rgb(getComputedStyle(e).backgroundColor);
			if (c.length === 3 || c[3] === 1) return c;
		}
		return [255, 255, 255];
	};
	const found = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; n = walk.nextNode(); ) {
		const e = n.parentElement;
		if (!n.nodeValue.trim() || !e.checkVisibility() || e.closest(".unseen, svg")) continue;
		const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) found.push(n.nodeValue.trim() + " " + ratio.toFixed(2));
	}
	return found;
})()`

// TestPages looks at every page in both themes and on a phone: it must load
// without a complaint, be usable by ear, be legible, and fit the width.
func TestPages(t *testing.T) {
	s := newStage(t, busy)
	s.furnish()
	b := open(t, s)
	for _, v := range views(s) {
		b.visit(v.path)
		b.until(settled)
		b.checkAccess(v.name)
		for _, look := range []struct {
			name, theme string
			width       int64
		}{{"light", "light", 1280}, {"dark", "dark", 1280}, {"dark-phone", "dark", 390}, {"light-phone", "light", 390}} {
			b.run(scheme(look.theme), chromedp.EmulateViewport(look.width, 860))
			for _, text := range eval[[]string](b, faint) {
				t.Errorf("%s, %s: too faint: %s", v.name, look.name, text)
			}
			if wide := eval[int](b, "document.documentElement.scrollWidth"); wide > int(look.width) {
				t.Errorf("%s, %s: %d pixels wide", v.name, look.name, wide)
			}
			b.picture(v.name + "-" + look.name)
		}
		b.run(chromedp.EmulateViewport(1280, 860))
	}
	b.forgive("404") // of the page that is missing
}

// picture keeps what the page looks like, if pictures are wanted.
func (b *tab) picture(name string) {
	if *screenshots == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err == nil {
		err = os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
