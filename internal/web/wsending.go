package web

import "github.com/coder/websocket"

// wsEnding is why a WebSocket ends. The zero value means that it goes on.
type wsEnding uint32

const (
	wsGoesOn  wsEnding = iota
	wsGone             // the client has closed, or the connection broke
	wsMisuse           // a message that is none of this protocol
	wsTooBig           // a message of more than 64 KiB
	wsNoHello          // authentication is on, and no hello came in time
	wsDenied           // the hello's auth token is none of this node's
	wsMoved            // another node is the active
	wsTooSlow          // the client does not read its answers
	wsSilent           // two pings in a row were not answered
	wsStops            // this process stops
	wsKilled           // and does not wait any more
	numWSEndings
)

// wsEndings gives each its name, for logs, its close code, and whether what is
// still to be said is said first. Code 0: nobody is there who could read one.
var wsEndings = [numWSEndings]struct {
	name  string
	code  websocket.StatusCode
	flush bool
}{
	wsGoesOn:  {"goes on", 0, false},
	wsGone:    {"closed by the client, or broken", 0, false},
	wsMisuse:  {"not this protocol", websocket.StatusPolicyViolation, true},
	wsTooBig:  {"message too big", websocket.StatusMessageTooBig, true},
	wsNoHello: {"no hello with an auth token in time", 4401, true},
	wsDenied:  {"not authenticated", 4401, true},
	wsMoved:   {"another node is the active", 4307, true},
	wsTooSlow: {"answers not read", 4429, false},
	wsSilent:  {"pings not answered", 0, false},
	wsStops:   {"this node stops", websocket.StatusGoingAway, true},
	wsKilled:  {"this node ends", 0, false},
}

func (e wsEnding) String() string { return wsEndings[e].name }
