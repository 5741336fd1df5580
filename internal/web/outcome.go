package web

import (
	"fmt"
	"net/http"
	"strconv"

	"holdfast/internal/locks"
)

// outcome is what a code of the lock table is over HTTP.
type outcome struct {
	status int    // of a success
	code   string // of a problem otherwise
	field  string // bad-request: the field concerned
	limit  string // limit: which
}

// outcomes has every code of the lock table but the pushes, which no HTTP
// request gets. A test walks them.
var outcomes = map[locks.Code]outcome{
	locks.Granted:    {status: http.StatusOK},
	locks.Queued:     {status: http.StatusAccepted},
	locks.Released:   {status: http.StatusOK},
	locks.Extended:   {status: http.StatusOK},
	locks.CancelDone: {status: http.StatusOK},

	locks.WaiterRemoved: {status: http.StatusOK},
	locks.ForceDone:     {status: http.StatusOK},
	locks.HolderChanged: {code: codeHolderChanged},

	locks.NotGranted:     {code: codeNotGranted},
	locks.Cancelled:      {code: codeNotGranted},
	locks.Mismatch:       {code: codeModeMismatch},
	locks.NotHolder:      {code: codeNotHolder},
	locks.AlreadyGranted: {code: codeAlreadyGranted},
	locks.NoSuchTicket:   {code: codeNoSuchTicket},
	locks.NothingPending: {code: codeNoSuchTicket},
	locks.NotAllowed:     {code: codeNotAllowed},

	locks.BadKey:   {code: codeBadRequest, field: "key"},
	locks.BadLease: {code: codeBadRequest, field: "lease"},
	locks.BadWait:  {code: codeBadRequest, field: "wait"},
	locks.BadSlots: {code: codeBadRequest, field: "slots"},
	locks.BadRetry: {code: codeBadRequest, field: "ticket"},

	locks.LimitKeys:       {code: codeLimit, limit: "keys"},
	locks.LimitKeyBytes:   {code: codeLimit, limit: "key-bytes"},
	locks.LimitWaiters:    {code: codeLimit, limit: "waiters"},
	locks.LimitKeyWaiters: {code: codeLimit, limit: "key-waiters"},
	locks.LimitHolders:    {code: codeLimit, limit: "holders"},
	locks.LimitPending:    {code: codeLimit, limit: "pending"},

	locks.Moved: {code: codeUnavailable},
}

// limits says what each limit bounds and which setting raises it.
var limits = map[string]struct{ what, setting string }{
	"keys":        {"the number of keys", "HOLDFAST_MAX_KEYS"},
	"key-bytes":   {"the bytes of all keys", "HOLDFAST_MAX_KEY_BYTES"},
	"waiters":     {"the number of waiters", "HOLDFAST_MAX_WAITERS"},
	"key-waiters": {"the number of waiters for one key", "HOLDFAST_MAX_WAITERS_PER_KEY"},
	"pending":     {"the number of pending requests of one client", "HOLDFAST_MAX_PENDING"},
	"holders":     {fmt.Sprintf("%d holders of one key", locks.MaxHolders), ""},
}

// refuse makes the answer for a reply that is no success.
func (s *Server) refuse(key string, r *locks.Reply) *answer {
	o := outcomes[r.Code]
	quoted := strconv.Quote(key)
	switch o.code {
	case codeBadRequest:
		return badInput(&inputError{o.field, s.bound(r.Code)})
	case codeNotGranted:
		return notGranted(key, r)
	case codeLimit:
		return overLimit(key, o.limit)
	case codeModeMismatch:
		return failWith(o.code, fmt.Sprintf("%s stands with %d slots: ask with the same number", quoted, r.Slots),
			facts{Key: key, Slots: r.Slots})
	case codeNotHolder:
		return failWith(o.code, "this token does not hold "+quoted, facts{Key: key})
	case codeNoSuchTicket:
		return failWith(o.code, "this ticket neither waits for "+quoted+" nor holds it", facts{Key: key})
	case codeAlreadyGranted:
		return failWith(o.code, fmt.Sprintf("this ticket holds %s with token %d: release it", quoted, r.Token),
			facts{Key: key, Token: r.Token})
	case codeHolderChanged:
		return failWith(o.code, "this token no longer holds "+quoted, facts{Key: key})
	case codeNotAllowed:
		return failWith(o.code, "this ticket for "+quoted+" belongs to another identity", facts{Key: key})
	}
	if o.code == codeUnavailable {
		return fail(o.code, "this node is not the active: repeat the request").with("Retry-After", "1")
	}
	return fail(codeInternal, fmt.Sprintf("the lock table answered %v", r.Code))
}

// bound says what the table found out of range.
func (s *Server) bound(c locks.Code) string {
	switch c {
	case locks.BadKey:
		return fmt.Sprintf("must have 1 to %d bytes", locks.MaxKeyLength)
	case locks.BadLease:
		return fmt.Sprintf("must be at most %s seconds", seconds(s.maxLease))
	case locks.BadSlots:
		return "must not be above 1 for a shared lock"
	case locks.BadRetry:
		return "must not be all zero"
	}
	return "must not be negative"
}

func notGranted(key string, r *locks.Reply) *answer {
	quoted := strconv.Quote(key)
	reason, detail := "timeout", quoted+" was not granted in time"
	switch {
	case r.Code == locks.Cancelled:
		reason, detail = "cancelled", "the attempt on "+quoted+" was withdrawn, or its ticket was asked for again by a later request"
	case r.Held:
		reason, detail = "held", quoted+" is held"
	}
	return failWith(codeNotGranted, detail, facts{Key: key, Reason: reason})
}

func overLimit(key, limit string) *answer {
	l := limits[limit]
	detail := "the limit on " + l.what + " is reached"
	if l.setting != "" {
		detail += ": " + l.setting + " raises it"
	}
	return failWith(codeLimit, detail, facts{Key: key, Limit: limit, Setting: l.setting})
}
