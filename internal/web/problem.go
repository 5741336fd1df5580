package web

import (
	"net/http"
	"strconv"
	"strings"

	"holdfast/internal/locks"
)

// problem is the body of every refusal: RFC 9457, with the code that programs
// look at and the facts of the case.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	facts
}

// facts are the members that only some problems have.
type facts struct {
	Field   string      `json:"field,omitempty"`   // bad-request: which input
	Key     string      `json:"key,omitempty"`     // what was asked for
	Reason  string      `json:"reason,omitempty"`  // not-granted: why
	Token   locks.Token `json:"token,omitempty"`   // already-granted: with what
	Slots   uint16      `json:"slots,omitempty"`   // mode-mismatch: what stands on the key
	Limit   string      `json:"limit,omitempty"`   // limit: which
	Setting string      `json:"setting,omitempty"` // the setting that would change the answer
	Role    string      `json:"role,omitempty"`    // health: what this node is
	Checks  []check     `json:"checks,omitempty"`  // health: what was looked at
}

// fail makes the answer for a code of the table of problems.
func fail(code, detail string) *answer { return failWith(code, detail, facts{}) }

func failWith(code, detail string, f facts) *answer {
	kind := problems[code]
	return &answer{
		status: kind.status,
		plain:  detail,
		body: &problem{
			Type: "/problems/" + code, Title: kind.title, Status: kind.status, Detail: detail, Code: code, facts: f,
		},
	}
}

// badInput makes the answer for input that is wrong.
func badInput(err error) *answer {
	e := err.(*inputError)
	if e.field == "" {
		return fail(codeBadRequest, e.what)
	}
	// The name may be anything that came in place of one.
	name := strings.ToValidUTF8(e.field[:min(len(e.field), 64)], "")
	shown := name
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
		shown = strconv.Quote(name)
	}
	return failWith(codeBadRequest, shown+": "+e.what, facts{Field: name})
}

// Problem codes: what a program looks at. Each has a page under /problems/.
const (
	codeBadRequest      = "bad-request"
	codeUnauthenticated = "unauthenticated"
	codeNotAllowed      = "not-allowed"
	codeForeignOrigin   = "foreign-origin"
	codeNotFound        = "not-found"
	codeMethod          = "method-not-allowed"
	codeUpgrade         = "upgrade-required"
	codeTooLarge        = "too-large"
	codeUnsupportedType = "unsupported-type"
	codeUnknownHost     = "unknown-host"
	codeLimit           = "limit"
	codeUnavailable     = "unavailable"
	codeNoActive        = "no-active"
	codeNotSynced       = "not-synced"
	codeInProgress      = "in-progress"
	codeInternal        = "internal"
	codeNotGranted      = "not-granted"
	codeModeMismatch    = "mode-mismatch"
	codeNotHolder       = "not-holder"
	codeNoSuchTicket    = "no-such-ticket"
	codeAlreadyGranted  = "already-granted"
	codeHolderChanged   = "holder-changed"
)

// problemKind is what all problems of one code have in common. Meaning and
// advice make its page.
type problemKind struct {
	status  int
	title   string
	meaning string
	advice  string
}

var problems = map[string]problemKind{
	codeBadRequest: {http.StatusBadRequest, "Bad request",
		"The input of the request can't be understood, or a value is out of its range. Nothing was changed.",
		"The detail names the field and what it may hold. Fields are given as a JSON body, as a form body, or as query parameters with an empty body, never in two of these at once; each field once."},
	codeUnauthenticated: {http.StatusUnauthorized, "Not authenticated",
		"This node asks for an auth token, and the request has none that it knows.",
		"Send “Authorization: Bearer TOKEN” or “X-Holdfast-Auth: TOKEN”. Many clients drop the first when a redirect leads to another port; the second survives."},
	codeNotAllowed: {http.StatusForbidden, "Not allowed",
		"The request was understood, but the identity behind it may not do this: the ticket belongs to another identity, or the view asked for shows what only operators see.",
		"Use the identity that made the ticket, or one with the scope that the detail names."},
	codeForeignOrigin: {http.StatusForbidden, "Foreign origin",
		"A browser sent this request from a page of another origin (scheme, host and port). Such requests may not change anything.",
		"If the page is yours, list its origin, scheme included, in HOLDFAST_TRUSTED_ORIGINS. Behind a proxy that ends TLS, list the public origin there or the proxy in HOLDFAST_TRUSTED_PROXIES."},
	codeNotFound: {http.StatusNotFound, "Not found",
		"Nothing is served under this path.",
		"The paths are listed in /v1/openapi.json. Keys of locks are fields of a request, never parts of a path."},
	codeMethod: {http.StatusMethodNotAllowed, "Method not allowed",
		"This path exists, but not for this method.",
		"The Allow header says which methods it has. Whatever changes something is a POST."},
	codeUpgrade: {http.StatusUpgradeRequired, "Upgrade required",
		"This path is a WebSocket, and the request does not ask for one, or for another version.",
		"Connect with a WebSocket client, to ws:// or wss://. A proxy on the way must pass the headers Connection and Upgrade on."},
	codeTooLarge: {http.StatusRequestEntityTooLarge, "Body too large",
		"A request body may have 65,536 bytes.",
		"No valid request of this API comes near that."},
	codeUnsupportedType: {http.StatusUnsupportedMediaType, "Unsupported media type",
		"The body is in a format, character set or compression that this API does not read.",
		"Send application/json or application/x-www-form-urlencoded in UTF-8, not compressed, or query parameters and no body."},
	codeUnknownHost: {http.StatusMisdirectedRequest, "Unknown host",
		"The Host header is no name of this node. While auth is off such requests are refused, because a web page could otherwise reach the node through a name of its own that is made to point here.",
		"Use an IP address, localhost or a name that the node advertises, or list the name in HOLDFAST_ALLOWED_HOSTS (* allows any)."},
	codeLimit: {http.StatusTooManyRequests, "Limit reached",
		"A limit of this node is reached: keys, bytes of keys, waiters, or holders of one key. What is held already is not affected.",
		"Try again later, or raise the setting that the detail names."},
	codeUnavailable: {http.StatusServiceUnavailable, "Unavailable",
		"This node does not serve the request now, most often because it is stopping, or it is not in the role that was asked for.",
		"Try again after the Retry-After header's seconds, or at another node. An acquire with a ticket can be repeated safely."},
	codeNoActive: {http.StatusServiceUnavailable, "No active node",
		"Only the active node of the cluster serves this, and this one is not it. It knows of none now, or of no address at which clients reach it: a standby is taking over, most likely.",
		"Try again after the Retry-After header's seconds, here or at another node. An acquire with a ticket keeps its place. If it stays so, /v1/cluster shows what each node sees."},
	codeNotSynced: {http.StatusConflict, "Not in step",
		"The service can only be handed to a node that has all that this one has, and that one has not, or there is no other.",
		"Look at /v1/cluster and try again once a node is synced."},
	codeInProgress: {http.StatusConflict, "In progress",
		"The service is on its way to another node already, or frozen for an instant for another reason.",
		"Look at /v1/cluster before you try again."},
	codeInternal: {http.StatusInternalServerError, "Internal error",
		"Something went wrong that should not: a fault in Holdfast.",
		"The node's log has the details. Please report them."},
	codeNotGranted: {http.StatusConflict, "Not granted",
		"The lock was not granted. The reason says why: “held” (try was given, and the key is taken), “timeout” (the wait ended), or “cancelled” (the attempt was withdrawn, or its ticket was asked for by a later request).",
		"You do not hold the lock. Try again if you still want it."},
	codeModeMismatch: {http.StatusConflict, "Mode mismatch",
		"All who hold a key or wait for it must name the same number of slots, and others stand on this key.",
		"Ask with the slots that the answer names, or use another key."},
	codeNotHolder: {http.StatusConflict, "Not the holder",
		"This token does not hold this key: its lease ran out, it was released before, or it never held it.",
		"Stop using what the lock protects; somebody else may hold it now. Acquire it again if you need it."},
	codeNoSuchTicket: {http.StatusNotFound, "No such ticket",
		"No attempt with this ticket waits for this key or holds it.",
		"There is nothing to cancel."},
	codeAlreadyGranted: {http.StatusConflict, "Already granted",
		"The attempt can't be cancelled because it was granted: it holds the key with the token in the answer.",
		"Release the key with that token if you don't want it."},
	codeHolderChanged: {http.StatusConflict, "Holder changed",
		"The token that was to be released by force does not hold the key any more.",
		"Look at the key again before you decide."},
}
