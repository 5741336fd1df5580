//go:build linux

package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace without a name: it lives as long as its file is open or a process is in it, so
// nothing is left behind, however a test ends.
type namespace struct {
	t    *testing.T
	file *os.File
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	ns := &namespace{t: t}
	err := onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			ns.file, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	})
	if err != nil {
		t.Fatalf("make a network namespace: %v", err)
	}
	t.Cleanup(func() { ns.file.Close() })
	return ns
}

// onThread runs fn on a thread of its own, which ends with it: what fn changes about its thread is nobody else's.
func onThread(fn func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- fn()
	}()
	return <-done
}

// within runs fn in the namespace. Sockets and processes that it makes stay there.
func (ns *namespace) within(fn func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(ns.file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter a network namespace: %w", err)
		}
		return fn()
	})
}

func (ns *namespace) begin(cmd *exec.Cmd) error { return ns.within(cmd.Start) }

func (ns *namespace) dial(ctx context.Context, network, addr string) (nc net.Conn, err error) {
	err = ns.within(func() (err error) {
		var d net.Dialer
		nc, err = d.DialContext(ctx, network, addr)
		return err
	})
	return nc, err
}

// run runs a command in the namespace.
func (ns *namespace) run(stdin string, args ...string) {
	ns.t.Helper()
	err := ns.within(func() error {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		ns.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
}

// path names the namespace to other processes.
func (ns *namespace) path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.file.Fd()) }

// network is a cluster whose nodes are machines of their own as far as the network goes, on one switch. The test's
// clients are on the switch itself and reach every node, whatever is cut between them.
type network struct {
	*set
	spaces []*namespace
}

// newNetwork makes a cluster of n nodes, none of them running.
func newNetwork(t *testing.T, n int, env ...string) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("network namespaces: %v", err)
		}
	}
	hub := newNamespace(t)
	hub.run("", "ip", "link", "add", "switch", "type", "bridge")
	hub.run("", "ip", "address", "add", "10.77.0.254/24", "dev", "switch")
	hub.run("", "ip", "link", "set", "switch", "up")
	w := &network{}
	var hosts []string
	for i := range n {
		ns := newNamespace(t)
		port, host := fmt.Sprint("port", i), fmt.Sprint("10.77.0.", i+1)
		hub.run("", "ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", ns.path())
		hub.run("", "ip", "link", "set", port, "master", "switch", "up")
		ns.run("", "ip", "link", "set", "lo", "up")
		ns.run("", "ip", "address", "add", host+"/24", "dev", "eth0")
		ns.run("", "ip", "link", "set", "eth0", "up")
		w.spaces, hosts = append(w.spaces, ns), append(hosts, host)
	}
	w.set = newSetAt(t, hosts, env...)
	w.set.dial = hub.dial
	for i, one := range w.nodes {
		one.begin = w.spaces[i].begin
	}
	return w
}

// deafen makes a node hear nothing from some others any more: not even that they are gone.
func (w *network) deafen(node int, to ...int) {
	w.t.Helper()
	rules := "add table ip cut\nadd chain ip cut in { type filter hook input priority 0; }\n"
	for _, other := range to {
		rules += "add rule ip cut in ip saddr " + w.nodes[other].host + " drop\n"
	}
	w.spaces[node].run(rules, "nft", "-f", "-")
}

// heal makes every node hear every other one.
func (w *network) heal() {
	w.t.Helper()
	for _, ns := range w.spaces {
		ns.run("add table ip cut\ndelete table ip cut\n", "nft", "-f", "-")
	}
}
