package wire

import (
	"fmt"
	"strings"
	"testing"
)

// Every constant has a name of its own; anything else shows its number.
func TestNames(t *testing.T) {
	for _, group := range [][]fmt.Stringer{
		{OpHello, OpAcquire, OpRelease, OpExtend, OpCancel, OpPing, OpError, OpLost, OpMoved, OpContended},
		{CodeMalformed, CodeUnauthenticated, CodeNotAllowed, CodeBadArgument, CodeLimit, CodeUnavailable, CodeMismatch, CodeInternal},
		{ReasonExpired, ReasonForced, ReasonSuperseded},
		{RoleActive, RoleStandby, RoleJoining},
		{FlagTry, FlagRetry, FlagShared, FlagBound, FlagContended},
	} {
		seen := map[string]bool{}
		for _, c := range group {
			name := c.String()
			if name == "" || strings.ContainsAny(name, "0123456789") || seen[name] {
				t.Errorf("%T %d is named %q", c, c, name)
			}
			seen[name] = true
		}
	}
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{Op('Z'), "op 0x5a"}, {Code(99), "code 99"}, {Reason(0), "reason 0x00"}, {Role('Q'), "role 0x51"},
		{Flags(0), "0"}, {FlagTry | FlagShared, "TRY|SHARED"}, {flagsKnown | 0xC0, "TRY|RETRY|SHARED|BOUND|CONTENDED|0xc0"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestOnlyTwoCodesClose(t *testing.T) {
	for c := range Code(300) {
		if got, want := c.Closes(), c == CodeMalformed || c == CodeUnauthenticated; got != want {
			t.Errorf("%v.Closes() = %v", c, got)
		}
	}
}

// The names of all outcomes, and what the descriptions of frames show and hide.
func TestDescriptions(t *testing.T) {
	ticket := Ticket{0xDE, 0xAD, 0xBE, 0xEF, 0x42, 15: 0x42}
	for _, c := range []struct {
		frame fmt.Stringer
		want  string
	}{
		{Request{Op: OpHello, ID: 1, Version: 1, Auth: []byte("sesame"), Owner: []byte("web"), Software: []byte("s/1")},
			`hello #1 version=1 auth=6 bytes owner="web" software="s/1"`},
		{Request{Op: OpAcquire, ID: 7, Key: []byte("jobs\n"), LeaseMS: 1, WaitMS: 2, Slots: 3, Ticket: ticket, Flags: FlagTry | FlagBound},
			`acquire #7 "jobs\n" lease=1ms wait=2ms slots=3 ticket=deadbeef… flags=TRY|BOUND`},
		{&Request{Op: OpAcquire, Key: []byte("jobs")}, `acquire #0 "jobs" lease=0ms wait=0ms slots=0`},
		{Request{Op: OpRelease, ID: 7, Key: []byte("jobs"), Token: 8}, `release #7 "jobs" token=8`},
		{Request{Op: OpExtend, ID: 7, Key: []byte("jobs"), Token: 8, LeaseMS: 1}, `extend #7 "jobs" token=8 lease=1ms`},
		{Request{Op: OpCancel, ID: 7, Target: 5}, `cancel #7 target=5`},
		{Request{Op: OpPing, ID: 7}, `ping #7`},
		{Request{Op: 'Z', ID: 7, Flags: 128}, `op 0x5a #7 flags=0x80`},
		{Reply{Op: OpHello, Status: StatusWelcome, ID: 1, Version: 1, Role: RoleActive, Node: []byte("n1"), Addr: []byte("a:1"), MaxKey: 2, DefaultLeaseMS: 3, MaxLeaseMS: 4, Software: []byte("s"), ActiveNode: []byte("n2")},
			`hello welcome #1 version=1 role=active node="n1" active="a:1" max_key=2 default_lease=3ms max_lease=4ms software="s" active_node="n2"`},
		{Reply{Op: OpAcquire, Status: StatusGranted, ID: 7, Key: []byte("jobs"), Token: 8, LeaseMS: 1}, `acquire granted #7 "jobs" token=8 lease=1ms`},
		{Reply{Op: OpAcquire, Status: StatusNotGranted, Key: []byte("jobs")}, `acquire not granted #0 "jobs"`},
		{Reply{Op: OpAcquire, Status: StatusCancelled, Key: []byte("jobs")}, `acquire withdrawn #0 "jobs"`},
		{Reply{Op: OpAcquire, Status: StatusMoved, Key: []byte("jobs"), Addr: []byte("a:1"), Node: []byte("n2")}, `acquire moved #0 "jobs" addr="a:1" node="n2"`},
		{Reply{Op: OpRelease, Status: StatusReleased, Key: []byte("jobs")}, `release released #0 "jobs"`},
		{Reply{Op: OpRelease, Status: StatusNone, Key: []byte("jobs")}, `release not holder #0 "jobs"`},
		{Reply{Op: OpExtend, Status: StatusExtended, Key: []byte("jobs"), LeaseMS: 1}, `extend extended #0 "jobs" lease=1ms`},
		{Reply{Op: OpExtend, Status: StatusNone, Key: []byte("jobs")}, `extend not holder #0 "jobs"`},
		{Reply{Op: OpCancel, Status: StatusCancelled, ID: 7}, `cancel cancelled #7`},
		{Reply{Op: OpCancel, Status: StatusNone, ID: 7}, `cancel nothing pending #7`},
		{Reply{Op: OpPing, Status: StatusPong, ID: 7}, `ping pong #7`},
		{Reply{Op: OpAcquire, Status: StatusError, ID: 7, Code: CodeLimit, Message: []byte("keys")}, `acquire error #7 code=5 (limit reached) message="keys"`},
		{&Reply{Op: OpLost, Key: []byte("jobs"), Token: 8, Reason: ReasonExpired}, `lost #0 "jobs" token=8 reason=expired`},
		{Reply{Op: OpMoved, Addr: []byte("a:1"), Node: []byte("n2")}, `node moved #0 addr="a:1" node="n2"`},
		{Reply{Op: OpContended, Key: []byte("jobs"), Token: 8, Waiters: 2}, `contended #0 "jobs" token=8 waiters=2`},
		{Reply{Op: 'q'}, `unknown push #0`},
		{Reply{Op: OpPing, Status: 'Z'}, `ping unknown #0`},
	} {
		if got := c.frame.String(); got != c.want {
			t.Errorf("%s, want\n%s", got, c.want)
		}
	}
}
