package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"holdfast/cmd/holdfast/internal/fakeserver"
	"holdfast/wire"
)

func TestPingTable(t *testing.T) {
	s := startServer(t, "HOLDFAST_NODE=n1")
	o := s.command("ping", "-c", "2", "-i", "1ms")
	want := regexp.MustCompile(`^ADDRESS +NODE +ROLE +SOFTWARE +ANSWERED +MIN +AVG +MAX
` + regexp.QuoteMeta(s.addr) + ` +n1 +active +holdfastd/v1\.2\.3-test +2/2 +\S+[µm]s +\S+[µm]s +\S+[µm]s
$`)
	if o.code != 0 || o.stderr != "" || !want.MatchString(o.stdout) {
		t.Errorf("%+v", o)
	}
}

// One address that is dead, or no active, does not hide the others.
func TestPingSeveral(t *testing.T) {
	s := startServer(t)
	standby := fakeserver.NewServer()
	standby.Hello.Role, standby.Hello.Node, standby.Hello.Addr = wire.RoleStandby, []byte("n2"), []byte("10.0.0.1:7620")
	addr := standby.Start(t)
	dead := startServer(t)
	dead.kill()
	o := s.command("ping", "--addr", strings.Join([]string{dead.addr, addr, s.addr}, ","), "-c", "1", "-o", "json")
	var got []pingResult
	if err := json.Unmarshal([]byte(o.stdout), &got); err != nil {
		t.Fatal(err, o)
	}
	if o.code != exitUnreachable || len(got) != 3 || !strings.Contains(o.stderr, dead.addr+": connect: connection refused") {
		t.Fatalf("%+v", o)
	}
	if r := got[0]; r.Addr != dead.addr || r.Error != "connect: connection refused" || r.Answered != 0 {
		t.Errorf("dead: %+v", r)
	}
	if r := got[1]; r.Role != "standby" || r.Node != "n2" || r.Active != "10.0.0.1:7620" || r.Software != "fake/1" || r.Answered != 1 {
		t.Errorf("standby: %+v", r)
	}
	if r := got[2]; r.Role != "active" || r.Answered != 1 || r.Min <= 0 || r.Min > r.Avg || r.Avg > r.Max {
		t.Errorf("active: %+v", r)
	}
}

func TestPingWithoutPong(t *testing.T) {
	t.Parallel() // it waits for the pong
	deaf := fakeserver.NewServer()
	deaf.Intercept = func(_ *fakeserver.Conn, r *wire.Request) bool { return r.Op == wire.OpPing }
	o := command(t.Context(), nil, "ping", "--addr", deaf.Start(t))
	if o.code != exitUnreachable || !strings.Contains(o.stderr, "ping 1: read: i/o timeout") || !strings.Contains(o.stdout, " 0/1 ") {
		t.Errorf("%+v", o)
	}
}

func TestPingUsage(t *testing.T) {
	for _, args := range [][]string{{"-c", "0"}, {"-i", "-1s"}, {"extra"}, {"-o", "yaml"}} {
		if o := command(t.Context(), nil, append([]string{"ping"}, args...)...); o.code != exitFailure || o.stderr == "" || o.stdout != "" {
			t.Errorf("%v: %+v", args, o)
		}
	}
}
