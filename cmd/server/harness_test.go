package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/web"
	"holdfast/internal/web/webtest"
	"holdfast/wire"
)

// patience bounds every wait of these tests. Nothing here takes that long unless it hangs.
const patience = 20 * time.Second

// binary is the real program, built once for the tests that kill it.
var binary string

func TestMain(m *testing.M) {
	for name := range environment() {
		os.Unsetenv(name) // a developer's own settings are not what is tested
	}
	dir, err := os.MkdirTemp("", "holdfastd")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "holdfastd")
	out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-X main.version=v9.9.9-test", "-o", binary, ".").CombinedOutput()
	if err != nil {
		panic(string(out))
	}
	code := m.Run()
	os.RemoveAll(dir)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// daemonVars is the environment of every daemon under test: any ports, and a log that a test can read.
func daemonVars(vars ...string) []string {
	return append([]string{
		"HOLDFAST_NATIVE_ADDR=127.0.0.1:0", "HOLDFAST_HTTP_ADDR=127.0.0.1:0",
		"HOLDFAST_NODE=n1", "HOLDFAST_LOG_FORMAT=json",
	}, vars...)
}

// started is a daemon under test, in this process or in its own.
type started struct {
	*logTap
	native, http string             // addresses
	stop         context.CancelFunc // in this process: asks it to stop
	exit         chan int           // its exit code, once
	cmd          *exec.Cmd          // the process, if it has one
}

// startHere runs a daemon in this process.
func startHere(t *testing.T, vars ...string) *started {
	t.Helper()
	setenv(t, daemonVars(vars...)...)
	ctx, cancel := context.WithCancel(context.Background())
	s := &started{logTap: newLogTap(), stop: cancel, exit: make(chan int, 1)}
	go func() {
		s.exit <- run(ctx, nil, io.Discard, s.logTap)
	}()
	s.awaitStart(t)
	t.Cleanup(func() {
		cancel()
		s.exitCode(t)
	})
	return s
}

// startProcess runs the real program.
func startProcess(t *testing.T, vars ...string) *started {
	t.Helper()
	s := launch(t, vars...)
	s.awaitStart(t)
	return s
}

// launch is startProcess without waiting for anything.
func launch(t *testing.T, vars ...string) *started {
	t.Helper()
	s := &started{logTap: newLogTap(), exit: make(chan int, 1), cmd: exec.Command(binary)}
	s.cmd.Env = daemonVars(vars...)
	s.cmd.Stderr = s.logTap
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		s.cmd.Wait()
		s.exit <- s.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.exitCode(t)
	})
	return s
}

func (s *started) awaitStart(t *testing.T) {
	t.Helper()
	line := s.await(t, "started")
	s.native, s.http = line["native"].(string), line["http"].(string)
}

// exitCode waits for the end; it can be asked again.
func (s *started) exitCode(t *testing.T) int {
	t.Helper()
	select {
	case code := <-s.exit:
		s.exit <- code
		return code
	case <-time.After(patience):
		t.Fatalf("still running; log:\n%s", s.text())
		return 0
	}
}

func (s *started) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// logTap takes a daemon's log and hands its lines to a test.
type logTap struct {
	lines chan map[string]any // more than any test makes; a line that finds no room is only kept as text

	mu  sync.Mutex // guards what follows
	all bytes.Buffer
	cut []byte // the start of a line whose end has not come
}

func newLogTap() *logTap { return &logTap{lines: make(chan map[string]any, 1000)} }

func (l *logTap) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	l.cut = append(l.cut, p...)
	for {
		whole, rest, ok := bytes.Cut(l.cut, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		var line map[string]any
		if json.Unmarshal(whole, &line) == nil {
			select {
			case l.lines <- line:
			default:
			}
		}
		l.cut = rest
	}
}

func (l *logTap) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// await returns the next line with that message, and drops those before it.
func (l *logTap) await(t *testing.T, msg string) map[string]any {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case line := <-l.lines:
			if line["msg"] == msg {
				return line
			}
		case <-deadline:
			t.Fatalf("no line %q in the log:\n%s", msg, l.text())
		}
	}
}

// client speaks the native protocol.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *bufio.Reader
	next uint32
}

// dial connects and says hello; the welcome is read.
func dial(t *testing.T, addr, auth string) *client {
	t.Helper()
	c := connect(t, addr)
	if r := c.do(wire.Request{Op: wire.OpHello, Version: wire.Version, Auth: []byte(auth)}); r.Status != wire.StatusWelcome {
		t.Fatalf("hello was answered %+v", r)
	}
	return c
}

// connect only connects.
func connect(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return &client{t: t, conn: conn, r: bufio.NewReader(conn)}
}

func (c *client) send(r wire.Request) {
	c.t.Helper()
	c.next++
	r.ID = c.next
	if _, err := c.conn.Write(wire.AppendRequest(nil, &r)); err != nil {
		c.t.Fatal(err)
	}
}

// read returns the next frame.
func (c *client) read() wire.Reply {
	c.t.Helper()
	head, err := c.r.Peek(4)
	if err != nil {
		c.t.Fatal(err)
	}
	frame := make([]byte, 4+int(head[2])<<8+int(head[3])) // no frame here is longer than 65,535 bytes
	if _, err := io.ReadFull(c.r, frame); err != nil {
		c.t.Fatal(err)
	}
	var r wire.Reply
	if _, err := r.Decode(frame); err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *client) do(r wire.Request) wire.Reply {
	c.t.Helper()
	c.send(r)
	return c.read()
}

// acquire takes a free key and returns its token.
func (c *client) acquire(key string) uint64 {
	c.t.Helper()
	r := c.do(wire.Request{Op: wire.OpAcquire, Key: []byte(key), LeaseMS: 60_000, Flags: wire.FlagTry})
	if r.Status != wire.StatusGranted {
		c.t.Fatalf("acquire of %s was answered %+v", key, r)
	}
	return r.Token
}

// closed says whether the other side ends the connection, without a word or after some.
func (c *client) closed() bool {
	_, err := io.Copy(io.Discard, c.r)
	return err == nil || strings.Contains(err.Error(), "reset")
}

// ask sends an HTTP request and returns the status and the body. The connection is not kept.
func ask(t *testing.T, method, url string, header ...string) (int, string) {
	t.Helper()
	status, body, err := tryAsk(t, method, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

func tryAsk(t *testing.T, method, url string, header ...string) (int, string, error) {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 0, "", err
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	contract, err := webtest.Load(web.OpenAPI) // every answer is held against it
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: contract.Transport(t, &http.Transport{DisableKeepAlives: true}), Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}
