package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"holdfast/internal/mark"
	"holdfast/wire"
)

func TestBothPortsServeOneTable(t *testing.T) {
	d := startHere(t)
	c := dial(t, d.native, "")
	token := c.acquire("job")

	status, body := ask(t, "POST", "http://"+d.http+"/v1/acquire?key=job&try=1")
	if status != http.StatusConflict || !strings.Contains(body, "not-granted") {
		t.Errorf("a key held over TCP was answered %d %s over HTTP", status, body)
	}
	if status, body = ask(t, "POST", fmt.Sprintf("http://%s/v1/release?key=job&token=%d", d.http, token)); status != http.StatusOK {
		t.Errorf("release over HTTP was answered %d %s", status, body)
	}
	if next := c.acquire("job"); next <= token {
		t.Errorf("token %d after %d", next, token)
	}
	if status, _ := ask(t, "GET", "http://"+d.http+"/readyz"); status != http.StatusOK {
		t.Errorf("readyz answers %d", status)
	}
}

func TestStartLine(t *testing.T) {
	d := startHere(t)
	var line map[string]any
	if err := json.Unmarshal([]byte(strings.SplitN(d.text(), "\n", 2)[0]), &line); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"level": "INFO", "msg": "started", "node": "n1", "component": "server", "version": version, "auth": "off",
		"native": d.native, "http": d.http,
	} {
		if line[key] != want {
			t.Errorf("%s is %v, want %v", key, line[key], want)
		}
	}
	if strings.HasSuffix(d.native, ":0") || strings.HasSuffix(d.http, ":0") {
		t.Errorf("the line names %s and %s, not the ports that were chosen", d.native, d.http)
	}
}

func TestWarningWithoutAuth(t *testing.T) {
	const warning = "NO AUTH: whoever reaches these ports can take and release every lock"
	for _, c := range []struct {
		vars []string
		want bool
	}{
		{nil, false},
		{[]string{"HOLDFAST_NATIVE_ADDR=0.0.0.0:0"}, true},
		{[]string{"HOLDFAST_HTTP_ADDR=:0"}, true},
		{[]string{"HOLDFAST_HTTP_ADDR=:0", "HOLDFAST_AUTH_TOKEN=correct-horse-battery"}, false},
	} {
		t.Run(strings.Join(c.vars, " "), func(t *testing.T) {
			d := startHere(t, c.vars...)
			d.stop()
			if code := d.exitCode(t); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			if got := strings.Contains(d.text(), warning); got != c.want {
				t.Errorf("warned: %v, want %v; log:\n%s", got, c.want, d.text())
			}
		})
	}
}

func TestAuthOnBothPorts(t *testing.T) {
	const token = "correct-horse-battery"
	d := startHere(t, "HOLDFAST_AUTH_TOKEN="+token)
	dial(t, d.native, token).acquire("job")
	for _, wrong := range []string{"", "correct-horse-batter", token + "x", "wrong-horse-battery"} {
		c := connect(t, d.native)
		if r := c.do(wire.Request{Op: wire.OpHello, Version: wire.Version, Auth: []byte(wrong)}); r.Code != wire.CodeUnauthenticated || !c.closed() {
			t.Errorf("hello with %q was answered %+v", wrong, r)
		}
		if status, body := ask(t, "GET", "http://"+d.http+"/v1/lock?key=job", "X-Holdfast-Auth: "+wrong); status != http.StatusUnauthorized {
			t.Errorf("HTTP with %q was answered %d %s", wrong, status, body)
		}
	}
	for _, header := range []string{"X-Holdfast-Auth: " + token, "Authorization: Bearer " + token} {
		if status, body := ask(t, "GET", "http://"+d.http+"/v1/lock?key=job", header); status != http.StatusOK {
			t.Errorf("HTTP with the token was answered %d %s", status, body)
		}
	}
	if strings.Contains(d.text(), token) || strings.Contains(d.text(), "wrong-horse") {
		t.Errorf("a token shows in the log:\n%s", d.text())
	}
}

func TestConnectionsOfBothPortsCountTogether(t *testing.T) {
	for _, limit := range []string{"HOLDFAST_MAX_CONNECTIONS=3", "HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS=3"} {
		t.Run(limit, func(t *testing.T) {
			d := startHere(t, limit)
			first, second := dial(t, d.native, ""), dial(t, d.native, "")
			web := connect(t, d.http)
			web.conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"))
			if line, _ := web.r.ReadString('\n'); !strings.Contains(line, " 200 ") {
				t.Fatalf("the third connection, over HTTP, was answered %q", line)
			}

			fourth := connect(t, d.native)
			if r := fourth.do(wire.Request{Op: wire.OpHello, Version: wire.Version}); r.Code != wire.CodeLimit || !fourth.closed() {
				t.Errorf("the fourth, over TCP, was answered %+v", r)
			}
			fifth := connect(t, d.http)
			fifth.conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"))
			if line, _ := fifth.r.ReadString('\n'); !strings.Contains(line, " 503 ") {
				t.Errorf("the fifth, over HTTP, was answered %q", line)
			}

			// Those who were admitted go on, and the place of one that leaves is free again.
			first.acquire("job")
			second.conn.Close()
			web.conn.Close()
			for dialled := false; !dialled; {
				next := connect(t, d.native)
				dialled = next.do(wire.Request{Op: wire.OpHello, Version: wire.Version}).Status == wire.StatusWelcome
			}
		})
	}
}

// C-53 and the hello's contract: everyone who waits is answered, and the exit is in order.
func TestGracefulStopAnswersWaiters(t *testing.T) {
	d := startHere(t)
	holder := dial(t, d.native, "")
	holder.acquire("job")

	const waiters = 50
	var native []*client
	for range waiters {
		c := dial(t, d.native, "")
		c.send(wire.Request{Op: wire.OpAcquire, Key: []byte("job")})
		if c.do(wire.Request{Op: wire.OpPing}).Op != wire.OpPing { // the acquire before it is in the queue now
			t.Fatal("no pong")
		}
		native = append(native, c)
	}
	type answer struct {
		status int
		body   string
		err    error
	}
	polls := make(chan answer, waiters)
	for range waiters {
		go func() {
			status, body, err := tryAsk(t, "POST", "http://"+d.http+"/v1/acquire?key=job&wait=40&poll=40")
			polls <- answer{status, body, err}
		}()
	}
	awaitWaiters(t, d, 2*waiters)
	d.stop()

	for _, c := range native {
		var answered, pushed bool
		for !answered || !pushed {
			r := c.read()
			answered = answered || r.Op == wire.OpAcquire && r.Status == wire.StatusMoved && len(r.Addr) == 0
			pushed = pushed || r.Op == wire.OpMoved && len(r.Addr) == 0
		}
		if !c.closed() {
			t.Error("the connection stays open")
		}
	}
	for range waiters {
		if a := <-polls; a.err != nil || a.status != http.StatusServiceUnavailable {
			t.Errorf("a long poll was answered %d %s (%v), want 503", a.status, a.body, a.err)
		}
	}
	if code := d.exitCode(t); code != exitOK {
		t.Errorf("exit code %d; log:\n%s", code, d.text())
	}
	if _, err := net.Dial("tcp", d.native); err == nil {
		t.Error("the native port is still open")
	}
}

// awaitWaiters returns once n acquires wait for the key "job". Each look is answered by the node: there is no sleep.
func awaitWaiters(t *testing.T, d *started, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		var view struct {
			Total int `json:"waiters_total"`
		}
		_, body := ask(t, "GET", "http://"+d.http+"/v1/lock?key=job&waiters=0")
		if err := json.Unmarshal([]byte(body), &view); err != nil {
			t.Fatal(err)
		}
		if view.Total == n {
			return
		}
	}
	t.Fatalf("not %d waiters", n)
}

// Readiness says no at once, and for the drain delay everything is served all the same.
func TestDrainDelay(t *testing.T) {
	d := startHere(t, "HOLDFAST_DRAIN_DELAY=1s")
	c := dial(t, d.native, "")
	begin := time.Now()
	d.stop()
	d.await(t, "stopping")
	for status := 0; status != http.StatusServiceUnavailable; { // the line is written just before
		status, _ = ask(t, "GET", "http://"+d.http+"/readyz")
	}
	c.acquire("job")
	dial(t, d.native, "").acquire("another")
	if status, body := ask(t, "POST", "http://"+d.http+"/v1/acquire?key=third"); status != http.StatusOK {
		t.Errorf("while draining HTTP answered %d %s", status, body)
	}
	if status, _ := ask(t, "GET", "http://"+d.http+"/livez"); status != http.StatusOK {
		t.Errorf("while draining livez answered %d", status)
	}
	if code := d.exitCode(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("stopped after %v, before the drain delay was over", took)
	}
}

// runOnce runs to the end and returns the exit code and what was printed.
func runOnce(t *testing.T, args []string, vars ...string) (code int, stdout, stderr string) {
	t.Helper()
	setenv(t, vars...)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err)
	return code, out.String(), err.String()
}

func TestStartFailures(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()

	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, "token-mark"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	inUse := t.TempDir()
	dir, _, err := mark.Open(inUse)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()

	for name, c := range map[string]struct {
		vars []string
		code int
		want string
	}{
		"configuration": {[]string{"HOLDFAST_MAX_KEYS=0", "HOLDFAST_TLS_CA=x"}, exitUsage, "holdfastd: 2 problems in the configuration:\n" +
			"  HOLDFAST_TLS_CA: TLS is not part of this version\n  HOLDFAST_MAX_KEYS: \"0\" is out of range; allowed: 1 to 1000000000\n"},
		"native port": {[]string{"HOLDFAST_NATIVE_ADDR=" + addr}, exitFailed, "HOLDFAST_NATIVE_ADDR: listen tcp " + addr + ": bind: address already in use"},
		"HTTP port":   {[]string{"HOLDFAST_HTTP_ADDR=" + addr}, exitFailed, "HOLDFAST_HTTP_ADDR: listen tcp " + addr + ": bind: address already in use"},
		"damage":      {[]string{"HOLDFAST_DATA_DIR=" + damaged}, exitFailed, "HOLDFAST_DATA_DIR: token mark " + damaged + "/token-mark: is damaged or cut short (8 bytes)"},
		"in use":      {[]string{"HOLDFAST_DATA_DIR=" + inUse}, exitFailed, "HOLDFAST_DATA_DIR: data directory " + inUse + ": in use by another process, number "},
		"no parent":   {[]string{"HOLDFAST_DATA_DIR=" + inUse + "/a/b"}, exitFailed, "HOLDFAST_DATA_DIR: make data directory: mkdir " + inUse + "/a/b: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			vars := append([]string{"HOLDFAST_NATIVE_ADDR=127.0.0.1:0", "HOLDFAST_HTTP_ADDR=127.0.0.1:0"}, c.vars...)
			code, stdout, stderr := runOnce(t, nil, vars...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, printed %q and %q; want %d and %q", code, stdout, stderr, c.code, c.want)
			}
		})
	}
}

// The mark rules, not the clock: a mark an hour ahead is what a clock that was set back an hour looks like.
func TestClockSetBack(t *testing.T) {
	dir := t.TempDir()
	d := startHere(t, "HOLDFAST_DATA_DIR="+dir)
	now := dial(t, d.native, "").acquire("job")
	d.stop()
	d.exitCode(t)

	const hour = 8 * 2_000_000 * 3600 // tokens
	marks, kept, err := mark.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if kept <= now {
		t.Errorf("mark %d is not above the token %d", kept, now)
	}
	if err := marks.Store(now + hour); err != nil {
		t.Fatal(err)
	}
	marks.Close()

	d = startHere(t, "HOLDFAST_DATA_DIR="+dir)
	if got := dial(t, d.native, "").acquire("job"); got <= now+hour {
		t.Errorf("token %d is not above the mark %d", got, now+hour)
	}
}

func TestCommandLine(t *testing.T) {
	goVersion := runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"--version"}, exitOK, "holdfastd " + version + " (" + goVersion + ")\n", ""},
		{[]string{"--foo"}, exitUsage, "", "holdfastd: unknown argument \"--foo\": settings are environment variables; see holdfastd --help\n"},
		{[]string{""}, exitUsage, "", "holdfastd: unknown argument \"\": settings are environment variables; see holdfastd --help\n"},
		{[]string{"serve"}, exitUsage, "", "holdfastd: unknown argument \"serve\": settings are environment variables; see holdfastd --help\n"},
		{[]string{"--version", "-v"}, exitUsage, "", "holdfastd: --version takes no argument, but there is \"-v\"; see holdfastd --help\n"},
		{[]string{"healthcheck", "n1"}, exitUsage, "", "holdfastd: healthcheck takes no argument, but there is \"n1\"; see holdfastd --help\n"},
	} {
		code, stdout, stderr := runOnce(t, c.args)
		if code != c.code || stdout != c.stdout || stderr != c.stderr {
			t.Errorf("%q: exit code %d, printed %q and %q; want %d, %q and %q", c.args, code, stdout, stderr, c.code, c.stdout, c.stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"--help", "-h"} {
		code, stdout, stderr := runOnce(t, []string{arg}, "HOLDFAST_MAX_KEYS=nonsense")
		if code != exitOK || stderr != "" {
			t.Errorf("exit code %d, %q", code, stderr)
		}
		golden(t, "testdata/help.txt", stdout)
	}
}

func TestCheckConfig(t *testing.T) {
	const token = "correct-horse-battery"
	file := "testdata/check-config.token"
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file)

	code, stdout, stderr := runOnce(t, []string{"--check-config"}, "HOLDFAST_NODE=n1", "HOLDFAST_MAX_KEYS=5", "HOLDFAST_AUTH_TOKEN_FILE="+file,
		"HOLDFAST_ALLOWED_HOSTS=a.example, b.example")
	if code != exitOK || stderr != "" {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	golden(t, "testdata/check-config-good.txt", stdout)

	code, stdout, stderr = runOnce(t, []string{"--check-config"}, "HOLDFAST_NODE=n1", "HOLDFAST_MAX_KEYS=many", "HOLDFAST_AUTH_TOKEN=secret", "HOLDFAST_MAX_LESE=1m", "HOLDFAST_MAX_LEASE=1s")
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	golden(t, "testdata/check-config-bad.txt", stdout+stderr)
}

func TestHealthcheck(t *testing.T) {
	d := startHere(t)
	code, stdout, stderr := runOnce(t, []string{"healthcheck"}, "HOLDFAST_HTTP_ADDR="+d.http, "HTTP_PROXY=http://127.0.0.1:9")
	if code != exitOK || stdout != "ready\n" {
		t.Errorf("exit code %d, printed %q and %q", code, stdout, stderr)
	}
	_, port, _ := net.SplitHostPort(d.http)
	if code, _, stderr = runOnce(t, []string{"healthcheck"}, "HOLDFAST_HTTP_ADDR=:"+port); code != exitOK {
		t.Errorf("with a wildcard: exit code %d, %q", code, stderr)
	}
	d.stop()
	d.exitCode(t)
	code, _, stderr = runOnce(t, []string{"healthcheck"}, "HOLDFAST_HTTP_ADDR="+d.http)
	if code != exitFailed || !strings.Contains(stderr, "holdfastd healthcheck: ") || !strings.Contains(stderr, "connection refused") {
		t.Errorf("with nobody there: exit code %d, %q", code, stderr)
	}
	// It has only two answers.
	if code, _, _ = runOnce(t, []string{"healthcheck"}, "HOLDFAST_HTTP_ADDR=nonsense"); code != exitFailed {
		t.Errorf("with a bad address: exit code %d", code)
	}
	if code, _, _ = runOnce(t, []string{"healthcheck"}, "HOLDFAST_HTTP_ADDR=127.0.0.1:0"); code != exitFailed {
		t.Errorf("with port 0: exit code %d", code)
	}
}

func TestLocalTarget(t *testing.T) {
	for addr, want := range map[listenAddr]string{
		":7621": "127.0.0.1:7621", "0.0.0.0:7621": "127.0.0.1:7621", "[::]:7621": "[::1]:7621",
		"10.0.0.1:80": "10.0.0.1:80", "node.example:7621": "node.example:7621", "[::ffff:0.0.0.0]:1": "127.0.0.1:1",
	} {
		if got, err := localTarget(addr); err != nil || got != want {
			t.Errorf("%s: got %s (%v), want %s", addr, got, err, want)
		}
	}
}
