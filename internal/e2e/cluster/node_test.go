//go:build linux

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const (
	nativePort = "7620"
	httpPort   = "7621"
	secret     = "a-secret-for-tests"
)

// set is the nodes of a cluster, by rank.
type set struct {
	t     *testing.T
	nodes []*node
	dial  func(ctx context.Context, network, addr string) (net.Conn, error) // reaches them from the test
	http  *http.Client                                                      // asks nodes about themselves
}

// node is a member of a cluster, running or not.
type node struct {
	t     *testing.T
	set   *set
	name  string
	host  string // its IP address
	env   []string
	begin func(*exec.Cmd) error // starts its process where it belongs
	life  *process              // the present one, or the last; nil before the first start
	lives []*process
}

var clusters atomic.Int32 // made by this process

// loopback returns an address that no other cluster of this machine's tests has: each process has a network of 127/8 of
// its own, and each cluster 8 addresses of it.
func loopback(cluster int32, member int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", 1+pid>>8%254, pid&0xFF, 1+(int(cluster)*10+member)%254)
}

// newSet makes a cluster of n nodes, none of them running, which have these settings besides their names and addresses.
func newSet(t *testing.T, n int, env ...string) *set {
	t.Helper()
	at := clusters.Add(1)
	var hosts []string
	for i := range n {
		hosts = append(hosts, loopback(at, i))
	}
	return newSetAt(t, hosts, env...)
}

// newSetAt is newSet with the nodes at these addresses.
func newSetAt(t *testing.T, hosts []string, env ...string) *set {
	s := &set{t: t, dial: (&net.Dialer{}).DialContext}
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, network, addr string) (net.Conn, error) { return s.dial(ctx, network, addr) },
		DisableKeepAlives: true,
	}
	s.http = &http.Client{Transport: transport, Timeout: patience}
	for i, host := range hosts {
		n := &node{t: t, set: s, name: fmt.Sprintf("n%d", i+1), host: host, begin: (*exec.Cmd).Start}
		s.nodes = append(s.nodes, n)
	}
	for _, n := range s.nodes {
		n.env = append([]string{
			"HOLDFAST_NODE=" + n.name, "HOLDFAST_PEERS=" + s.peers(), "HOLDFAST_CLUSTER_SECRET=" + secret,
			"HOLDFAST_NATIVE_ADDR=" + n.native(), "HOLDFAST_HTTP_ADDR=" + n.host + ":" + httpPort,
		}, env...)
	}
	t.Cleanup(s.tell)
	return s
}

// tell shows what the nodes logged, if the test has failed.
func (s *set) tell() {
	if !s.t.Failed() {
		return
	}
	for _, n := range s.nodes {
		for i, life := range n.lives {
			s.t.Logf("%s, life %d, process %d:\n%s", n.name, i+1, life.cmd.Process.Pid, life.text())
		}
	}
}

// peers is the list as every node has it, unless a test gives it another.
func (s *set) peers() string {
	var list []string
	for _, n := range s.nodes {
		list = append(list, n.name+"="+n.url())
	}
	return strings.Join(list, ",")
}

func (s *set) addrs() (native []string) {
	for _, n := range s.nodes {
		native = append(native, n.native())
	}
	return native
}

func (n *node) native() string { return n.host + ":" + nativePort }
func (n *node) url() string    { return "http://" + n.host + ":" + httpPort }

// set gives the node a setting, for its next start.
func (n *node) setting(name, value string) {
	n.env = append(n.env, name+"="+value)
}

// startSet makes a cluster and returns once the first node is active and the others are in step.
func startSet(t *testing.T, n int, env ...string) *set {
	t.Helper()
	s := newSet(t, n, env...)
	s.start()
	return s
}

func (s *set) start() {
	s.t.Helper()
	for _, n := range s.nodes {
		n.start()
	}
	s.settled(s.nodes[0])
}

// settled returns once active is that, and all other nodes that run are in step with it, by their own answers.
func (s *set) settled(active *node) {
	s.t.Helper()
	active.awaitRole("active")
	for _, n := range s.others(active) {
		if n.running() {
			n.awaitRole("standby") // its port is open then
			n.awaitState("to follow "+active.name, func(is state) bool {
				return is.Role == "standby" && is.Active != nil && is.Active.Name == active.name && is.Epoch == active.state().Epoch
			})
			n.answers("/standby")
		}
	}
	active.answers("/active")
}

// answers fails unless the node says yes.
func (n *node) answers(path string) {
	n.t.Helper()
	if code, body, err := n.get(path); err != nil || code != http.StatusOK {
		n.t.Fatalf("%s answered %s with %d %s (%v)", n.name, path, code, body, err)
	}
}

// others are the nodes but those given.
func (s *set) others(but ...*node) (rest []*node) {
next:
	for _, n := range s.nodes {
		for _, b := range but {
			if n == b {
				continue next
			}
		}
		rest = append(rest, n)
	}
	return rest
}

func (n *node) start() {
	n.t.Helper()
	n.life = launch(n.t, n.begin, n.env...)
	n.lives = append(n.lives, n.life)
}

func (n *node) running() bool {
	if n.life == nil {
		return false
	}
	select {
	case <-n.life.ended:
		return false
	default:
		return true
	}
}

// awaitRole returns once the node says that this is its role. Its log wakes this up, but is not asked: it leaves out
// lines that come too often.
func (n *node) awaitRole(role string) {
	n.t.Helper()
	late := time.Now().Add(patience)
	for {
		is, err := n.ask()
		switch {
		case err == nil && is.Role == role:
			return
		case !n.running():
			n.t.Fatalf("%s has ended and is not %s", n.name, role)
		case time.Now().After(late):
			n.t.Fatalf("%s did not become %s: it is %+v (%v)", n.name, role, is, err)
		}
		n.life.news(20 * time.Millisecond)
	}
}

// kill ends the process as a crash would.
func (n *node) kill() {
	n.t.Helper()
	n.life.signal(n.t, syscall.SIGKILL)
	n.life.exit(n.t)
}

// stop ends the process in order and returns its exit code.
func (n *node) stop() int {
	n.t.Helper()
	n.life.signal(n.t, syscall.SIGTERM)
	return n.life.exit(n.t)
}

// pause stops the process in its tracks. It returns when it surely stands still.
func (n *node) pause() {
	n.t.Helper()
	n.life.signal(n.t, syscall.SIGSTOP)
	var info syscall.WaitStatus
	if _, err := syscall.Wait4(n.life.cmd.Process.Pid, &info, syscall.WUNTRACED, nil); err != nil || !info.Stopped() {
		n.t.Fatalf("pause %s: %v, status %#x", n.name, err, info)
	}
}

func (n *node) resume() {
	n.t.Helper()
	n.life.signal(n.t, syscall.SIGCONT)
}

// get asks the node about itself.
func (n *node) get(path string) (code int, body string, err error) {
	r, err := n.set.http.Get(n.url() + path)
	if err != nil {
		return 0, "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, string(b), err
}

// state is what /v1/node says.
type state struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Epoch   uint64 `json:"epoch"`
	Seq     uint64 `json:"seq"`
	Held    int    `json:"held"`
	Waiters int    `json:"waiters"`
	Active  *struct {
		Name string `json:"name"`
	} `json:"active"`
}

func (n *node) ask() (s state, err error) {
	code, body, err := n.get("/v1/node")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("answered %d %s", code, body)
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &s)
	}
	return s, err
}

func (n *node) state() state {
	n.t.Helper()
	s, err := n.ask()
	if err != nil {
		n.t.Fatalf("ask %s: %v", n.name, err)
	}
	return s
}

// awaitState asks the node again and again, each question a round trip of its own, until ok is content: what it waits
// for is told by no line of the log.
func (n *node) awaitState(what string, ok func(state) bool) {
	n.t.Helper()
	for end := time.Now().Add(patience); ; {
		s := n.state()
		if ok(s) {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("%s: waited in vain for %s; it is %+v", n.name, what, s)
		}
	}
}

// level returns once the nodes have all that the active has; nobody may change anything meanwhile.
func (s *set) level(active *node) {
	s.t.Helper()
	want := active.state()
	for _, n := range s.others(active) {
		if n.running() {
			n.awaitState("the active's position", func(is state) bool { return is.Epoch == want.Epoch && is.Seq >= want.Seq })
		}
	}
}
