package wire

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the op's name, such as "acquire", or its byte, as in "op 0x5a".
func (o Op) String() string {
	switch o {
	case OpHello:
		return "hello"
	case OpAcquire:
		return "acquire"
	case OpRelease:
		return "release"
	case OpExtend:
		return "extend"
	case OpCancel:
		return "cancel"
	case OpPing:
		return "ping"
	case OpError:
		return "error"
	case OpLost:
		return "lost"
	case OpMoved:
		return "moved"
	case OpContended:
		return "contended"
	}
	return fmt.Sprintf("op 0x%02x", byte(o))
}

// String returns the names of the bits, such as "TRY|SHARED", and "0" if none is set.
func (f Flags) String() string {
	if f == 0 {
		return "0"
	}
	var names []string
	for i, name := range [...]string{"TRY", "RETRY", "SHARED", "BOUND", "CONTENDED"} {
		if f&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	if unknown := f &^ flagsKnown; unknown != 0 {
		names = append(names, fmt.Sprintf("0x%02x", byte(unknown)))
	}
	return strings.Join(names, "|")
}

// String returns what the code means in two or three words.
func (c Code) String() string {
	switch c {
	case CodeMalformed:
		return "malformed"
	case CodeUnauthenticated:
		return "not authenticated"
	case CodeNotAllowed:
		return "not allowed"
	case CodeBadArgument:
		return "bad argument"
	case CodeLimit:
		return "limit reached"
	case CodeUnavailable:
		return "unavailable"
	case CodeMismatch:
		return "slots or mode differ"
	case CodeInternal:
		return "internal"
	}
	return "code " + strconv.Itoa(int(c))
}

// Closes says whether the server closes the connection after this error.
func (c Code) Closes() bool { return c == CodeMalformed || c == CodeUnauthenticated }

// String returns "expired", "forced" or "superseded".
func (r Reason) String() string {
	switch r {
	case ReasonExpired:
		return "expired"
	case ReasonForced:
		return "forced"
	case ReasonSuperseded:
		return "superseded"
	}
	return fmt.Sprintf("reason 0x%02x", byte(r))
}

// String returns "active", "standby" or "joining".
func (r Role) String() string {
	switch r {
	case RoleActive:
		return "active"
	case RoleStandby:
		return "standby"
	case RoleJoining:
		return "joining"
	}
	return fmt.Sprintf("role 0x%02x", byte(r))
}

// Outcome says what op and status mean together, such as "granted", "not holder" or "lost".
func (r *Reply) Outcome() string { return kinds[kindOf(r.Op, r.Status)].name }

// String describes the request in one line for tests and logs. It never shows
// the auth token, and of the ticket only the start; the receiver is a value so
// that printing a Request by value does not show them either. Its form may
// change.
func (r Request) String() string {
	b := describe(r.Op.String(), r.ID, r.Key)
	switch r.Op {
	case OpHello:
		b = fmt.Appendf(b, " version=%d auth=%d bytes owner=%q software=%q", r.Version, len(r.Auth), r.Owner, r.Software)
	case OpAcquire:
		b = fmt.Appendf(b, " lease=%dms wait=%dms slots=%d", r.LeaseMS, r.WaitMS, r.Slots)
		if !r.Ticket.IsZero() {
			b = fmt.Appendf(b, " ticket=%x…", r.Ticket[:4])
		}
	case OpRelease:
		b = fmt.Appendf(b, " token=%d", r.Token)
	case OpExtend:
		b = fmt.Appendf(b, " token=%d lease=%dms", r.Token, r.LeaseMS)
	case OpCancel:
		b = fmt.Appendf(b, " target=%d", r.Target)
	}
	if r.Flags != 0 {
		b = fmt.Appendf(b, " flags=%v", r.Flags)
	}
	return string(b)
}

// String describes the reply in one line for tests and logs. Its form may change.
func (r Reply) String() string {
	what := r.Op.String() + " " + r.Outcome()
	if r.Status == StatusPush {
		what = r.Outcome()
	}
	b := describe(what, r.ID, r.Key)
	switch kindOf(r.Op, r.Status) {
	case kindWelcome:
		b = fmt.Appendf(b, " version=%d role=%v node=%q active=%q max_key=%d default_lease=%dms max_lease=%dms software=%q active_node=%q",
			r.Version, r.Role, r.Node, r.Addr, r.MaxKey, r.DefaultLeaseMS, r.MaxLeaseMS, r.Software, r.ActiveNode)
	case kindGranted:
		b = fmt.Appendf(b, " token=%d lease=%dms", r.Token, r.LeaseMS)
	case kindExtended:
		b = fmt.Appendf(b, " lease=%dms", r.LeaseMS)
	case kindLost:
		b = fmt.Appendf(b, " token=%d reason=%v", r.Token, r.Reason)
	case kindContended:
		b = fmt.Appendf(b, " token=%d waiters=%d", r.Token, r.Waiters)
	case kindMoved, kindMovedPush:
		b = fmt.Appendf(b, " addr=%q node=%q", r.Addr, r.Node)
	case kindError:
		b = fmt.Appendf(b, " code=%d (%v) message=%q", r.Code, r.Code, r.Message)
	}
	return string(b)
}

func describe(what string, id uint32, key []byte) []byte {
	b := fmt.Appendf(nil, "%s #%d", what, id)
	if len(key) > 0 {
		b = fmt.Appendf(b, " %q", key)
	}
	return b
}
