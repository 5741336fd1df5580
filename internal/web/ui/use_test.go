package ui_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/internal/web"
)

func press(keys string) step { return chromedp.KeyEvent(keys) }

func click(selector string) step {
	return chromedp.Click(chromedp.CSS(selector))
}

func fill(selector, text string) step {
	return chromedp.SendKeys(chromedp.CSS(selector), text)
}

// load runs steps that lead to another page, and waits until it is there.
func (b *tab) load(steps ...step) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, steps...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

// leave is load for a page whose address is known.
func (b *tab) leave(to string, steps ...step) {
	b.t.Helper()
	b.load(steps...)
	if at := eval[string](b, "location.pathname + location.search"); at != to {
		b.t.Fatalf("led to %s, want %s\n%s", at, to, b.text())
	}
}

func (b *tab) text() string {
	b.t.Helper()
	return eval[string](b, "document.querySelector('main').innerText")
}

func (b *tab) mustShow(parts ...string) {
	b.t.Helper()
	text := b.text()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			b.t.Errorf("the page does not say %q:\n%s", part, text)
		}
	}
}

// Everything can be reached from the keyboard alone.
func TestKeyboard(t *testing.T) {
	s := newStage(t, nil)
	s.furnish()
	b := open(t, s)
	b.visit("/ui/locks?q=deploy")
	b.until(settled)

	b.run(press("j"), press("j"), press("j"), press("k"))
	if at := eval[string](b, "document.querySelector('tr.at a').innerText"); at != "deploy/service-01" {
		t.Errorf("after j j j k the row is %q", at)
	}
	b.run(press("/"))
	if at := eval[string](b, "document.activeElement.name"); at != "q" {
		t.Errorf("/ went to %q", at)
	}
	b.run(press("p"), press(kb.Escape))
	if state := eval[string](b, "document.getElementById('pill').dataset.state"); state != "live" {
		t.Errorf("what was typed into the filter made the page %s", state)
	}
	b.run(press("p"))
	b.until("document.getElementById('pill').dataset.state === 'paused'")
	b.run(press("t"))
	if theme := eval[string](b, "document.documentElement.dataset.theme"); theme != "light" {
		t.Errorf("t chose the theme %q", theme)
	}
	b.leave("/ui/lock?key=deploy%2Fservice-01", press("j"), press("k"), press(kb.Enter))
	if theme := eval[string](b, "document.documentElement.dataset.theme"); theme != "light" {
		t.Errorf("the theme of the next page is %q", theme)
	}
	b.leave("/ui/help", press("?"))
	b.run(click("#shortcuts"), press("t"))
	if theme := eval[string](b, "document.documentElement.dataset.theme"); theme != "light" {
		t.Error("the keys are off, and t did something")
	}
}

// Without JavaScript the pages show all there is, and their forms work.
func TestWithoutJavaScript(t *testing.T) {
	s := newStage(t, busy)
	s.furnish()
	b := open(t, s, withoutScripts())
	b.visit("/")
	b.mustShow("Held", "n3", "not heard", "Grants and releases", "deploy/service-00")
	b.visit("/ui/locks")
	b.load(fill("input[name=q]", "*report*"), click(".filter button"))
	b.mustShow("1 of 81", "nightly/report")
	b.load(click("button[value=dark]"))
	if theme := eval[string](b, "document.documentElement.dataset.theme"); theme != "dark" {
		t.Errorf("the theme is %q", theme)
	}
	b.mustShow("1 of 81", "nightly/report")
	b.load(click("th.key a"))
	b.mustShow("worker-12", "In line: 12")
}

// What happens on the node shows on an open page, and rows that somebody reads
// stay where they are.
func TestLiveUpdates(t *testing.T) {
	s := newStage(t, nil)
	s.hold("b", time.Minute)
	s.hold("c", time.Minute)
	b := open(t, s)
	b.visit("/ui/locks")
	b.until(settled)
	s.hold("a", time.Minute)
	b.until("document.querySelector('.moved button')")
	if first := eval[string](b, "document.querySelector('tbody th').innerText"); first != "b" {
		t.Errorf("the list jumped: its first row is %q", first)
	}
	b.mustShow("3 · as of")
	b.run(click(".moved button"))
	b.until("document.querySelector('tbody th').innerText === 'a'")

	b.visit("/ui/clients")
	b.until(settled)
	third := s.node.Open(locks.Origin{Owner: "third"}, sink{})
	b.until("document.querySelector('main').innerText.includes('3 open sessions')")
	b.mustShow("build-7.example/412", "cron@db-2", "Rows have come, gone or changed places")
	third.Close()

	b.visit("/ui/lock?key=c")
	b.until(settled)
	s.first.Do([]locks.Command{{Op: locks.OpRelease, Key: []byte("c"), Token: s.tokens["c"]}})
	b.until("document.querySelector('main').innerText.includes('Nobody holds this key')")

	b.run(click("#pause"))
	s.hold("c", time.Minute)
	b.until("document.getElementById('pill-text').innerText.startsWith('paused')")
	b.mustShow("Nobody holds this key")
	b.run(click("#pause"))
	b.until("document.querySelector('main').innerText.includes('build-7.example/412')")
}

// Force release from the key's page to its end, with a holder that changes
// while the operator still types.
func TestForceRelease(t *testing.T) {
	s := newStage(t, nil)
	const key = "nightly/report"
	s.hold(key, time.Hour)
	s.wait(key, 2, 0)
	b := open(t, s)
	b.visit("/ui/lock?key=" + url.QueryEscape(key))
	first := tokenOf(s, key)
	b.leave("/ui/force?key=nightly%2Freport&token="+first, click("a.danger"))
	b.mustShow("build-7.example/412", first, "worker-1")

	b.load(fill("input[name=typed]", "nightly"), fill("input[name=reason]", "incident 4711"), click("button.danger"))
	b.mustShow("What you typed is not the key", "build-7.example/412")

	s.first.Do([]locks.Command{{Op: locks.OpRelease, Key: []byte(key), Token: s.tokens[key]}})
	b.load(chromedp.SetValue(chromedp.CSS("input[name=typed]"), key), click("button.danger"))
	b.mustShow("The holder changed", "Holder now", "worker-1", "Nothing was changed")
	if v, _, _ := s.node.View([]byte(key), 1, 9); v.Holders[0].Origin.Owner != "worker-1" || v.WaitersTotal != 1 {
		t.Fatalf("something was changed: %+v", v)
	}
	if typed := eval[string](b, "document.querySelector('input[name=typed]').value"); typed != "" {
		t.Errorf("for the new holder %q is typed already", typed)
	}

	b.leave("/ui/lock?key=nightly%2Freport&done=forced", fill("input[name=typed]", key), click("button.danger"))
	b.mustShow("The lock was taken from its holder", "worker-2")
	if v, _, _ := s.node.View([]byte(key), 1, 9); v.Holders[0].Origin.Owner != "worker-2" {
		t.Errorf("held by %+v", v.Holders)
	}
	b.mustShow("force-release", "because “incident 4711”", "force-done", "holder-changed")
	b.visit("/ui/events?kind=operator")
	b.mustShow("force-release", "because “incident 4711”", key)
	b.forgive("status of 400")
	b.forgive("status of 409")
}

// A waiter that is taken out is gone, and one that is gone can't be.
func TestRemoveWaiter(t *testing.T) {
	s := newStage(t, nil)
	s.hold("k", time.Hour)
	s.wait("k", 2, 0)
	b := open(t, s)
	b.visit("/ui/lock?key=k")
	b.load(click("tbody tr:nth-child(2) a.danger"))
	b.mustShow("worker-2")
	b.leave("/ui/lock?key=k&done=removed", fill("input[name=reason]", "stuck"), click("button.danger"))
	b.mustShow("taken out of the queue", "In line: 1")
	b.visit("/ui/remove?key=k&ticket=30303030303030303030303030303032")
	b.mustShow("does not wait any more")
}

// Whatever a key is called, it is shown as text and leads to its own page.
func TestHostileKeys(t *testing.T) {
	s := newStage(t, nil)
	for _, key := range hostile {
		s.hold(key, time.Hour)
	}
	b := open(t, s)
	b.visit("/ui/locks")
	b.until(settled)
	if n := eval[int](b, "document.querySelectorAll('main script, main img, main [onerror]').length"); n != 0 {
		t.Errorf("%d elements were made of keys", n)
	}
	b.mustShow(hostile[0], hostile[1], hostile[3], "rightU+202Eto left", "zeroU+200Bwidth and nbspU+00A0", hostile[7])
	for _, key := range hostile {
		b.visit("/ui/lock?key=" + url.QueryEscape(key))
		b.mustShow("build-7.example/412")
		if title := eval[string](b, "document.title"); title != "Key – n1 · Holdfast" {
			t.Errorf("%q: the title is %q", key, title)
		}
	}
	b.visit("/ui/force?" + url.Values{"key": {hostile[0]}, "token": {tokenOf(s, hostile[0])}}.Encode())
	b.leave("/ui/lock?key="+url.QueryEscape(hostile[0])+"&done=forced",
		fill("input[name=typed]", hostile[0]), fill("input[name=reason]", hostile[1]), click("button.danger"))
	b.mustShow("taken from its holder", hostile[0])
}

// A standby says that it is one, leads to the active, and changes nothing.
func TestStandby(t *testing.T) {
	s := newStage(t, func(c *web.Config) {
		c.UI.Active = func() node.ActiveNode { return node.ActiveNode{Name: "n2"} }
		c.UI.ActiveURL = activeElsewhere
		c.UI.Members = func() []node.Member {
			m := members()
			m[0].Role, m[1].Role, m[1].Seq = node.Standby, node.Active, m[0].Seq+3
			return m
		}
	})
	s.hold("k", time.Hour)
	b := open(t, s)
	b.visit("/ui/lock?key=k")
	if note := eval[string](b, "document.getElementById('replica').innerText"); note != "You are looking at a replica, 3 events behind. Active: n2 (open)" {
		t.Errorf("it says %q", note)
	}
	if to := eval[string](b, "document.querySelector('#replica a').href"); to != "http://10.0.0.2:7621/ui/lock?key=k" {
		t.Errorf("it leads to %q", to)
	}
	if n := eval[int](b, "document.querySelectorAll('a.danger').length"); n != 0 {
		t.Error("a standby offers to force a release")
	}
	b.visit("/ui/force?key=k&token=" + tokenOf(s, "k"))
	b.mustShow("This node is not the active", "Open n2")
	form := url.Values{"key": {"k"}, "typed": {"k"}, "token": {tokenOf(s, "k")}, "reason": {"r"}}
	answer, body := ask(t, s, "POST", "/ui/force", form)
	if answer.StatusCode != 409 || !strings.Contains(body, `href="http://10.0.0.2:7621/"`) {
		t.Errorf("a standby takes the form: %d %s", answer.StatusCode, body)
	}
	if v, _, _ := s.node.View([]byte("k"), 1, 1); v.HoldersTotal != 1 {
		t.Error("a standby has changed something")
	}
	b.forgive("status of 409")
}

// Where WebSockets don't get through the page says so, and is kept up to date by
// asking.
func TestWithoutSocket(t *testing.T) {
	s := newStage(t, nil)
	s.deaf = true
	b := open(t, s)
	b.visit("/ui/lock?key=k")
	b.until("document.getElementById('pill').dataset.state === 'asking'")
	s.hold("k", time.Hour)
	b.until("document.querySelector('main').innerText.includes('build-7.example/412')")
	if words := eval[string](b, "document.getElementById('pill-text').innerText"); !strings.HasPrefix(words, "no live feed · ") {
		t.Errorf("the page says %q", words)
	}
	b.forgive("WebSocket")
}

// A node that goes away while its page is open: the page says so and how old it
// is, and goes on once the node is back.
func TestNodeGoesAway(t *testing.T) {
	s := newStage(t, nil)
	b := open(t, s)
	b.visit("/ui/lock?key=k")
	b.until(settled)
	s.cut(true)
	b.until("document.getElementById('pill').dataset.state === 'lost'")
	if words := eval[string](b, "document.getElementById('pill-text').innerText"); !strings.HasPrefix(words, "reconnecting · ") {
		t.Errorf("the page says %q", words)
	}
	s.hold("k", time.Hour)
	s.cut(false)
	b.until("document.getElementById('pill').dataset.state === 'live' && document.querySelector('main').innerText.includes('build-7.example/412')")
	b.forgive("WebSocket")
	b.forgive("503")
}
