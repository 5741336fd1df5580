package ui_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is the one Chromium of the test run: nil until a test needs it.
var browser struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.stop != nil {
		browser.stop()
	}
	os.Exit(code)
}

func startBrowser() {
	path, err := exec.LookPath("chromium")
	if err != nil {
		browser.err = err
		return
	}
	// No sandbox: the tests may run as root, and load nothing but their own pages.
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("no-proxy-server", true), chromedp.WSURLReadTimeout(60*time.Second))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	browser.ctx, browser.stop = ctx, func() {
		chromedp.Cancel(ctx) // waits until it has gone
		cancel()
		end()
	}
	browser.err = chromedp.Do(ctx)
}

type step = chromedp.Action[chromedp.Void]

// tab is a page of its own, with what it complained about.
type tab struct {
	t   *testing.T
	ctx context.Context
	url string

	mu    sync.Mutex // guards what follows: events come from the browser's own goroutine
	wrong []string
}

// open opens a tab on a stage. A console error or a breach of the policy on
// what a page may load fails the test, whatever else it looks at.
func open(t *testing.T, s *stage, steps ...step) *tab {
	t.Helper()
	browser.once.Do(startBrowser)
	if browser.err != nil {
		t.Skip(browser.err)
	}
	b := &tab{t: t, url: s.url}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(b.listen))
	b.ctx = ctx
	t.Cleanup(func() { cancel(); b.mustBeQuiet() })
	b.run(append([]step{chromedp.EmulateViewport(1280, 900)}, steps...)...)
	return b
}

func (b *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.complain("exception: " + e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			b.complain(fmt.Sprintf("console: %v", e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.complain(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

func (b *tab) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, what)
}

// forgive takes out complaints that the test expects.
func (b *tab) forgive(part string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = slices.DeleteFunc(b.wrong, func(s string) bool { return strings.Contains(s, part) })
}

func (b *tab) mustBeQuiet() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.wrong {
		b.t.Errorf("the browser complains: %s", w)
	}
}

// patience bounds whatever the browser is asked for.
const patience = 20 * time.Second

func (b *tab) run(steps ...step) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx); err != nil { // the first makes the tab, and no limit may end with it
		b.t.Fatalf("open a tab: %v", err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

func (b *tab) visit(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.url+path), chromedp.WaitReady(chromedp.CSS("main")))
}

// until waits for an expression to be true: the page looks in every frame.
func (b *tab) until(expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[chromedp.Void](expression)); err != nil {
		b.t.Fatalf("never true: %s: %v\n%s", expression, err, eval[string](b, "document.body.innerText"))
	}
}

// eval returns what an expression is on the page.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("evaluate %s: %v", expression, err)
	}
	return v
}

// command is a step made of a command of the protocol.
func command[P, R any](c cdp.Command[P, R], params P) step {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

// scheme chooses a theme, with no colours on the way from one to the other.
func scheme(name string) step {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}, {Name: "prefers-reduced-motion", Value: "reduce"}},
	})
}

func withoutScripts() step {
	return command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}
