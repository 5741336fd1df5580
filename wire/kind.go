package wire

// kind is a row of the protocol's reply tables: what an op and a status mean
// together, and so which fields follow.
type kind uint8

const (
	kindUnknown kind = iota
	kindWelcome
	kindGranted
	kindNotGranted
	kindWithdrawn // acquire, by a cancel
	kindReleased
	kindExtended
	kindNotHolder
	kindCancelled // cancel: done
	kindNothingPending
	kindPong
	kindMoved
	kindError
	kindLost
	kindMovedPush
	kindContended
	kindUnknownPush // to be ignored
	numKinds
)

// welcomeBytes is the size of a welcome whose texts are all empty.
const welcomeBytes = 2 + 1 + 2 + 2 + 2 + 4 + 4 + 2 + 2

// kinds gives each kind its name and the least number of bytes of its fields.
var kinds = [numKinds]struct {
	name     string
	minBytes int
}{
	kindUnknown:        {"unknown", 0},
	kindWelcome:        {"welcome", welcomeBytes},
	kindGranted:        {"granted", 8 + 4},
	kindNotGranted:     {"not granted", 0},
	kindWithdrawn:      {"withdrawn", 0},
	kindReleased:       {"released", 0},
	kindExtended:       {"extended", 4},
	kindNotHolder:      {"not holder", 0},
	kindCancelled:      {"cancelled", 0},
	kindNothingPending: {"nothing pending", 0},
	kindPong:           {"pong", 0},
	kindMoved:          {"moved", 2 + 2},
	kindError:          {"error", 2 + 2},
	kindLost:           {"lost", 8 + 1},
	kindMovedPush:      {"node moved", 2 + 2},
	kindContended:      {"contended", 8 + 4},
	kindUnknownPush:    {"unknown push", 0},
}

// kindOf looks an op and a status up. Any op may be answered with an error,
// the unknown ones included.
func kindOf(op Op, status Status) kind {
	switch status {
	case StatusError:
		return kindError
	case StatusPush:
		return pushKind(op)
	}
	switch op {
	case OpAcquire:
		return acquireKind(status)
	case OpRelease, OpExtend:
		return holderKind(op, status)
	case OpCancel:
		switch status {
		case StatusCancelled:
			return kindCancelled
		case StatusNone:
			return kindNothingPending
		}
	case OpPing:
		if status == StatusPong {
			return kindPong
		}
	case OpHello:
		if status == StatusWelcome {
			return kindWelcome
		}
	}
	return kindUnknown
}

func acquireKind(status Status) kind {
	switch status {
	case StatusGranted:
		return kindGranted
	case StatusNotGranted:
		return kindNotGranted
	case StatusCancelled:
		return kindWithdrawn
	case StatusMoved:
		return kindMoved
	}
	return kindUnknown
}

// holderKind is about release and extend, where the token must hold the key.
func holderKind(op Op, status Status) kind {
	switch {
	case status == StatusReleased && op == OpRelease:
		return kindReleased
	case status == StatusExtended && op == OpExtend:
		return kindExtended
	case status == StatusNone:
		return kindNotHolder
	case status == StatusMoved:
		return kindMoved
	}
	return kindUnknown
}

func pushKind(op Op) kind {
	switch op {
	case OpLost:
		return kindLost
	case OpMoved:
		return kindMovedPush
	case OpContended:
		return kindContended
	}
	return kindUnknownPush
}
