package native

// ending is why a connection ends. The zero value means that it goes on.
type ending uint32

const (
	goesOn          ending = iota
	endOfInput             // the client closed its side
	readFailed             // reset, or found dead by keepalive
	writeFailed            //
	noHello                // no hello within HelloTimeout
	frameTooSlow           // a frame was begun and not finished within FrameTimeout
	misuse                 // a malformed frame, or one that may not come here
	unauthenticated        // wrong auth token
	wrongProtocol          // HTTP or TLS
	outputFull             // the client does not read its answers
	notAdmitted            // too many connections
	nodeStops              // graceful stop
	killed                 // the server ends at once
	numEndings
)

// endings gives each reason its name, for logs, and says how the connection is
// left. flush: answers already made are still written. linger: the client does
// not expect the end, so it must not be a reset, which could destroy the answer
// on its way: half-close, then read on for a while.
var endings = [numEndings]struct {
	name          string
	flush, linger bool
}{
	goesOn:          {"goes on", false, false},
	endOfInput:      {"closed by the client", true, false},
	readFailed:      {"reset or dead", false, false},
	writeFailed:     {"write failed", false, false},
	noHello:         {"no hello in time", true, false},
	frameTooSlow:    {"frame not finished in time", true, false},
	misuse:          {"protocol misuse", true, true},
	unauthenticated: {"not authenticated", true, true},
	wrongProtocol:   {"another protocol", true, true},
	outputFull:      {"answers not read", false, false},
	notAdmitted:     {"too many connections", true, true},
	nodeStops:       {"node stops", true, true},
	killed:          {"server ends", false, false},
}

func (e ending) String() string { return endings[e].name }
