package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/replica"
	"holdfast/internal/replica/link"
	"holdfast/wire"
)

// inCluster is the environment of a node n1 whose only peer is of the test's own making.
func inCluster(vars ...string) []string {
	return append([]string{
		"HOLDFAST_PEERS=n1=http://127.0.0.1:1,n2=http://127.0.0.1:2", secretVar, "HOLDFAST_ADVERTISE_NATIVE=127.0.0.1:7620",
	}, vars...)
}

// told is the owner of the test's links: it hears what they tell.
type told struct{ ups, downs, fails chan struct{} }

func (o *told) Step(in replica.Input) {
	var to chan struct{}
	switch in.(type) {
	case replica.LinkUp:
		to = o.ups
	case replica.LinkDown:
		to = o.downs
	case replica.DialFailed:
		to = o.fails
	}
	select {
	case to <- struct{}{}:
	default: // nobody waits for so many
	}
}

func (o *told) await(t *testing.T, what string, c chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no %s", what)
	}
}

// asPeer makes the test n2, which dials a daemon until the test ends.
func asPeer(t *testing.T, d *started, secret *atomic.Pointer[[]string]) *told {
	t.Helper()
	tr, err := link.New(link.Config{
		Rank: 1, Peers: []link.Peer{{Name: "n1", URL: "http://" + d.http}, {Name: "n2"}},
		Secrets: func() []string { return *secret.Load() }, Timeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o, done := &told{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1)}, make(chan struct{})
	go func() { tr.Run(ctx, o); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return o
}

func theSecret(secrets ...string) *atomic.Pointer[[]string] {
	p := &atomic.Pointer[[]string]{}
	p.Store(&secrets)
	return p
}

// A node that is full of clients does not lose its cluster for it, and links are no clients.
func TestLinksAreNoClients(t *testing.T) {
	for _, limit := range []string{"HOLDFAST_MAX_CONNECTIONS=1", "HOLDFAST_MAX_CONNECTIONS_PER_ADDRESS=1"} {
		t.Run(limit, func(t *testing.T) {
			d := startHere(t, inCluster(limit)...)
			first := dial(t, d.native, "")
			peer := asPeer(t, d, theSecret("correct-horse-battery"))
			peer.await(t, "link to a full node", peer.ups)

			beyond := connect(t, d.http)
			beyond.conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"))
			if line, _ := beyond.r.ReadString('\n'); !strings.Contains(line, " 503 ") || !beyond.closed() {
				t.Errorf("a client beyond the limit was answered %q", line)
			}
			first.conn.Close()
			for admitted := false; !admitted; { // the link takes none of the places
				c := connect(t, d.native)
				admitted = c.do(wire.Request{Op: wire.OpHello, Version: wire.Version}).Status == wire.StatusWelcome
			}
		})
	}
}

func TestWrongClusterSecret(t *testing.T) {
	d := startHere(t, inCluster()...)
	peer := asPeer(t, d, theSecret("another-horse-battery"))
	peer.await(t, "refusal", peer.fails)
	d.await(t, "peer refused")
}

// SIGHUP takes over a secret from its file: who proves the new one is let in from then on.
func TestReloadClusterSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old-horse-battery\n")
	d := startProcess(t, "HOLDFAST_PEERS=n1=http://127.0.0.1:1,n2=http://127.0.0.1:2", "HOLDFAST_ADVERTISE_NATIVE=127.0.0.1:7620",
		"HOLDFAST_CLUSTER_SECRET_FILE="+file)
	peer := asPeer(t, d, theSecret("new-horse-battery", "old-horse-battery"))
	peer.await(t, "refusal", peer.fails)
	write("old-horse-battery,new-horse-battery\n")
	d.signal(t, syscall.SIGHUP)
	if line := d.await(t, "reloaded"); line["cluster_secret_changed"] != true {
		t.Errorf("reloaded: %v", line)
	}
	peer.await(t, "link", peer.ups)
	d.signal(t, syscall.SIGTERM)
	peer.await(t, "end of the link", peer.downs)
	if code := d.exitCode(t); code != exitOK || strings.Contains(d.text(), "horse-battery") {
		t.Errorf("exit code %d; log:\n%s", code, d.text())
	}
}

// The start line says of which cluster a node is, and a port that peers can't reach is told.
func TestClusterStartLines(t *testing.T) {
	d := startHere(t, "HOLDFAST_PEERS=n0=http://10.255.255.1:1,n1=http://10.255.255.2:1", secretVar, "HOLDFAST_ADVERTISE_NATIVE=10.255.255.2:7620")
	if !strings.Contains(d.text(), `"rank":1,"peers":"n0,n1"`) {
		t.Errorf("log:\n%s", d.text())
	}
	d.await(t, "only this machine reaches an address, but HOLDFAST_PEERS names another for the others to come to")
}
