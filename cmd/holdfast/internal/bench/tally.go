package bench

import (
	"fmt"

	"holdfast/wire"
)

// fault is a kind of failed request.
type fault uint8

const (
	faultNone       fault = iota
	faultNotGranted       // an acquire of a key that only this run uses was not granted
	faultNotHeld          // a release came too late, or was never due
	faultMoved            // the server stopped being the active
	faultConnection       // could not be opened, or broke
	faultSilent           // no answer in time
	faultCode             // answered with an error: faultCode + its wire.Code
	numFaults       = faultCode + fault(wire.CodeInternal) + 1
)

func (f fault) String() string {
	switch f {
	case faultNotGranted:
		return "not granted"
	case faultNotHeld:
		return "not held"
	case faultMoved:
		return "moved"
	case faultConnection:
		return "connection"
	case faultSilent:
		return "no answer"
	case faultCode:
		return "unknown error"
	}
	return fmt.Sprintf("error %d: %v", f-faultCode, wire.Code(f-faultCode))
}

// faultOf says what is wrong with the answer to a request of a benchmark.
func faultOf(r *wire.Reply) fault {
	switch r.Status {
	case wire.StatusGranted, wire.StatusReleased, wire.StatusPong:
		return faultNone
	case wire.StatusNotGranted, wire.StatusCancelled:
		return faultNotGranted
	case wire.StatusNone:
		return faultNotHeld
	case wire.StatusMoved:
		return faultMoved
	}
	if r.Code > wire.CodeInternal {
		return faultCode
	}
	return faultCode + fault(r.Code)
}

// tally counts failed requests by kind.
type tally [numFaults]uint64

func (t *tally) merge(o *tally) {
	for i, n := range o {
		t[i] += n
	}
}

// byName is nil if there is nothing to name.
func (t *tally) byName() map[string]uint64 {
	var names map[string]uint64
	for i, n := range t {
		if n == 0 {
			continue
		}
		if names == nil {
			names = map[string]uint64{}
		}
		names[fault(i).String()] = n
	}
	return names
}
