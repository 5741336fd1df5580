package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/web"
	"holdfast/internal/web/webtest"
)

// bin is where TestMain put the programs.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	bin = dir
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "holdfastd"), "../../cmd/server")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build holdfastd: %v\n%s", err, out)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// daemon is a running holdfastd.
type daemon struct {
	t      *testing.T
	cmd    *exec.Cmd
	native string // address of the TCP port
	url    string // of the HTTP port
	http   *http.Client
	plain  *http.Transport
	ended  chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

var started = regexp.MustCompile(`msg=started .*\bnative=(\S+) http=(\S+)`)

// start runs holdfastd on ports of its own choice until the test ends.
func start(t *testing.T, env ...string) *daemon {
	t.Helper()
	d := &daemon{t: t, ended: make(chan struct{}), plain: &http.Transport{}}
	// Every answer is held against the OpenAPI document.
	d.http = &http.Client{Transport: webtest.MustLoad(t, web.OpenAPI).Transport(t, d.plain), Timeout: 2 * patience}
	d.cmd = exec.Command(filepath.Join(bin, "holdfastd"))
	d.cmd.Env = append([]string{"HOLDFAST_NATIVE_ADDR=127.0.0.1:0", "HOLDFAST_HTTP_ADDR=127.0.0.1:0"}, env...)
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	up := make(chan []string, 1)
	go d.read(stderr, up)
	t.Cleanup(func() {
		d.cmd.Process.Kill()
		<-d.ended
		d.plain.CloseIdleConnections()
		if t.Failed() {
			t.Logf("the server said:\n%s", d.said())
		}
	})
	select {
	case addrs := <-up:
		d.native, d.url = addrs[1], "http://"+addrs[2]
	case <-d.ended:
		t.Fatalf("holdfastd ended at once:\n%s", d.said())
	case <-time.After(patience):
		t.Fatalf("holdfastd did not start:\n%s", d.said())
	}
	return d
}

// read keeps what the server logs, and tells of its start.
func (d *daemon) read(stderr io.Reader, up chan<- []string) {
	defer close(d.ended)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if found := started.FindStringSubmatch(lines.Text()); found != nil {
			select {
			case up <- found:
			default:
			}
		}
		d.mu.Lock()
		d.log.WriteString(lines.Text() + "\n")
		d.mu.Unlock()
	}
	d.cmd.Wait()
}

func (d *daemon) said() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.log.String()
}

// stop sends SIGTERM and returns the exit code.
func (d *daemon) stop() int {
	d.t.Helper()
	d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.ended:
	case <-time.After(patience):
		d.t.Fatal("holdfastd did not stop")
	}
	return d.cmd.ProcessState.ExitCode()
}

// residentKB is what the server has in memory.
func (d *daemon) residentKB() int {
	d.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	var kb int
	fmt.Sscan(rest, &kb)
	return kb
}

// answer is an HTTP answer; the fields are those of any of the bodies.
type answer struct {
	Code   int    `json:"-"`
	Body   string `json:"-"`
	Status any    `json:"status"`
	Error  string `json:"code"`
	Detail string `json:"detail"`
	Reason string `json:"reason"`
	Token  uint64 `json:"token"`
	Ticket string `json:"ticket"`
	State  string `json:"state"`
	Key    string `json:"key"`

	Holders []struct {
		Token uint64  `json:"token"`
		Lease float64 `json:"lease"`
	} `json:"holders"`
	WaitersTotal int `json:"waiters_total"`
	Keys         int `json:"keys"`
	Waiters      any `json:"waiters"`
}

// post sends a form, a value of each name after the other.
func (d *daemon) post(path string, nameValue ...string) answer {
	d.t.Helper()
	form := url.Values{}
	for i := 0; i < len(nameValue); i += 2 {
		form.Add(nameValue[i], nameValue[i+1])
	}
	r, err := d.http.PostForm(d.url+path, form)
	return d.read1(r, err)
}

func (d *daemon) get(path string, nameValue ...string) answer {
	d.t.Helper()
	q := url.Values{}
	for i := 0; i < len(nameValue); i += 2 {
		q.Add(nameValue[i], nameValue[i+1])
	}
	r, err := d.http.Get(d.url + path + "?" + q.Encode())
	return d.read1(r, err)
}

func (d *daemon) read1(r *http.Response, err error) answer {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	a := answer{Code: r.StatusCode, Body: string(body)}
	if err := json.Unmarshal(body, &a); err != nil {
		d.t.Fatalf("%d %s: %v", r.StatusCode, body, err)
	}
	return a
}

// waiters returns once n wait for key.
func (d *daemon) waiters(key string, n int) {
	d.t.Helper()
	d.await(fmt.Sprintf("%d waiters of %q", n, key), func() bool {
		return d.get("/v1/lock", "key", key, "waiters", "1").WaitersTotal == n
	})
}

// await asks the server again and again until ok, each question a round trip
// of its own: what it waits for happens in another process.
func (d *daemon) await(what string, ok func() bool) {
	d.t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			d.t.Fatalf("waited in vain for %s", what)
		}
	}
}
