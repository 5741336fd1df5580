package ui_test

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/internal/web"
	"holdfast/internal/web/ui"
	"holdfast/web/static"
)

// ask makes a request without following where it leads.
func ask(t *testing.T, s *stage, method, path string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// Every page carries the policy on what it may load, and is never kept.
func TestHeaders(t *testing.T) {
	s := newStage(t, busy)
	s.furnish()
	for _, v := range views(s) {
		answer, body := ask(t, s, "GET", v.path, nil)
		h := answer.Header
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'; style-src 'self';") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: headers %v", v.path, h)
		}
		for _, inline := range []string{"style=", "onclick=", "<style", "<script>"} {
			if strings.Contains(body, inline) {
				t.Errorf("%s has %s in it", v.path, inline)
			}
		}
	}
}

// With auth on a browser gets a page that says so, with the right status.
func TestUnauthenticated(t *testing.T) {
	s := newStage(t, func(c *web.Config) {
		c.Authenticate = func(secret string) (web.Identity, bool) {
			return web.Identity{Name: "alice"}, secret == "correct-horse"
		}
	})
	s.hold("k", time.Hour)
	for _, path := range []string{"/", "/ui/locks", "/ui/force?key=k&token=1", "/ui/nothing"} {
		answer, body := ask(t, s, "GET", path, nil)
		if answer.StatusCode != 401 || answer.Header.Get("WWW-Authenticate") == "" || !strings.Contains(body, "asks who you are") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
	if answer, _ := ask(t, s, "GET", "/static/app.css", nil); answer.StatusCode != 200 {
		t.Errorf("the stylesheet: %d", answer.StatusCode)
	}
	_, body := ask(t, s, "GET", "/ui/lock?key=k", nil, "X-Holdfast-Auth", "correct-horse")
	if strings.Contains(body, tokenOf(s, "k")) || strings.Contains(body, "Force") || !strings.Contains(body, "signed in as alice") {
		t.Errorf("who may not operate sees %s", body)
	}
	answer, _ := ask(t, s, "GET", "/ui/force?key=k&token="+tokenOf(s, "k"), nil, "X-Holdfast-Auth", "correct-horse")
	if answer.StatusCode != 403 {
		t.Errorf("who may not operate gets the form: %d", answer.StatusCode)
	}
	form := url.Values{"key": {"k"}, "typed": {"k"}, "token": {tokenOf(s, "k")}, "reason": {"r"}}
	if answer, _ := ask(t, s, "POST", "/ui/force", form, "X-Holdfast-Auth", "correct-horse"); answer.StatusCode != 403 {
		t.Errorf("who may not operate forces: %d", answer.StatusCode)
	}
	if v, _, _ := s.node.View([]byte("k"), 1, 1); v.HoldersTotal != 1 {
		t.Error("the lock is gone")
	}
}

// readonly has no forms, off has no pages; the API stays as it is.
func TestModes(t *testing.T) {
	limited := newStage(t, func(c *web.Config) { c.UI.Mode = ui.ReadOnly })
	limited.hold("k", time.Hour)
	form := url.Values{"key": {"k"}, "typed": {"k"}, "token": {tokenOf(limited, "k")}, "reason": {"r"}}
	for _, path := range []string{"/ui/force", "/ui/remove"} {
		if answer, _ := ask(t, limited, "POST", path, form); answer.StatusCode < 400 {
			t.Errorf("readonly, POST %s: %d", path, answer.StatusCode)
		}
	}
	if _, body := ask(t, limited, "GET", "/ui/lock?key=k", nil); strings.Contains(body, "/ui/force") || !strings.Contains(body, "read only") {
		t.Errorf("readonly shows %s", body)
	}
	if v, _, _ := limited.node.View([]byte("k"), 1, 1); v.HoldersTotal != 1 {
		t.Error("readonly: the lock is gone")
	}
	off := newStage(t, func(c *web.Config) { c.UI.Mode = ui.Off })
	for _, path := range []string{"/", "/ui/locks", "/static/app.css"} {
		if answer, _ := ask(t, off, "GET", path, nil); answer.StatusCode != 404 {
			t.Errorf("off, GET %s: %d", path, answer.StatusCode)
		}
	}
	if answer, _ := ask(t, off, "GET", "/v1/locks", nil); answer.StatusCode != 200 {
		t.Errorf("off, the API: %d", answer.StatusCode)
	}
}

// What is wrong with a form is said, and nothing is done.
func TestForms(t *testing.T) {
	var acted []ui.Action
	s := newStage(t, func(c *web.Config) {
		c.UI.Audit = func(_ *http.Request, a ui.Action) { acted = append(acted, a) }
	})
	s.hold("k", time.Hour)
	token := tokenOf(s, "k")
	for _, c := range []struct {
		form   url.Values
		status int
		says   string
	}{
		{url.Values{}, 400, "A key has 1 to 1024 bytes"},
		{url.Values{"key": {"k"}, "token": {"x"}, "typed": {"k"}, "reason": {"r"}}, 400, "no token"},
		{url.Values{"key": {"k"}, "token": {token}, "typed": {"K"}, "reason": {"r"}}, 400, "not the key"},
		{url.Values{"key": {"k"}, "token": {token}, "typed": {"k"}, "reason": {"  "}}, 400, "A reason is needed"},
		{url.Values{"key": {"k"}, "token": {token}, "typed": {"k"}, "reason": {strings.Repeat("r", 257)}}, 400, "A reason is needed"},
		{url.Values{"key": {"k"}, "token": {"8"}, "typed": {"k"}, "reason": {"r"}}, 409, "The holder changed"},
		{url.Values{"key": {"none"}, "token": {"8"}, "typed": {"none"}, "reason": {"r"}}, 409, "Nobody holds"},
		{url.Values{"key": {strings.Repeat("k", 20_000)}}, 400, "could not be read"},
	} {
		answer, body := ask(t, s, "POST", "/ui/force", c.form)
		if answer.StatusCode != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%v: %d, without %q in\n%s", c.form, answer.StatusCode, c.says, body)
		}
	}
	if v, _, _ := s.node.View([]byte("k"), 1, 1); v.HoldersTotal != 1 {
		t.Error("the lock is gone")
	}
	answer, _ := ask(t, s, "POST", "/ui/force", url.Values{"key": {"k"}, "token": {token}, "typed": {"k"}, "reason": {" incident "}})
	if to := answer.Header.Get("Location"); answer.StatusCode != 303 || to != "/ui/lock?key=k&done=forced" {
		t.Errorf("%d to %s", answer.StatusCode, to)
	}
	if n := len(acted); n != 3 || acted[n-1].Kind != "force-release" || acted[n-1].Reason != "incident" || acted[n-1].Result.String() != "force-done" {
		t.Errorf("audited %+v", acted)
	}
	foreign, _ := ask(t, s, "POST", "/ui/force", url.Values{"key": {"k"}}, "Origin", "http://evil.example")
	if foreign.StatusCode != 403 {
		t.Errorf("from another origin: %d", foreign.StatusCode)
	}
}

// The theme's form leads back to where it was, and nowhere else.
func TestThemeForm(t *testing.T) {
	s := newStage(t, nil)
	for back, want := range map[string]string{
		"/ui/locks?q=a%26b": "/ui/locks?q=a%26b", "": "/", "https://evil.example": "/", "//evil.example": "/", `/\evil.example`: "/",
	} {
		answer, _ := ask(t, s, "POST", "/ui/theme", url.Values{"theme": {"dark"}, "back": {back}})
		if to := answer.Header.Get("Location"); answer.StatusCode != 303 || to != want {
			t.Errorf("%q: %d to %q", back, answer.StatusCode, to)
		}
	}
	for cookie, want := range map[string]string{"dark": "dark", "light": "light", `"><script>`: "system"} {
		_, body := ask(t, s, "GET", "/ui/help", nil, "Cookie", "holdfast_theme="+cookie)
		if !strings.Contains(body, `data-theme="`+want+`"`) {
			t.Errorf("with the cookie %q the theme is not %s", cookie, want)
		}
	}
}

// All that a browser loads fits into 60 KB, and is not sent again unchanged.
func TestStatic(t *testing.T) {
	if n := static.CompressedBytes(); n > 60_000 {
		t.Errorf("%d bytes", n)
	}
	s := newStage(t, nil)
	answer, _ := ask(t, s, "GET", "/static/app.js", nil)
	if answer.Header.Get("Content-Type") != "text/javascript; charset=utf-8" {
		t.Errorf("headers %v", answer.Header)
	}
	again, body := ask(t, s, "GET", "/static/app.js", nil, "If-None-Match", answer.Header.Get("ETag"))
	if again.StatusCode != 304 || body != "" {
		t.Errorf("asked again: %d %s", again.StatusCode, body)
	}
	if missing, _ := ask(t, s, "GET", "/static/static.go", nil); missing.StatusCode != 404 {
		t.Errorf("the source: %d", missing.StatusCode)
	}
}
