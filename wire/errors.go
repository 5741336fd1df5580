package wire

import "fmt"

// FrameError is a frame that breaks the protocol: answered with CodeMalformed and a close.
type FrameError struct {
	Op     Op     // of the broken frame; OpError where its header could not be read
	ID     uint32 // of the broken frame; 0 where its header could not be read
	Key    []byte // valid key to echo, or nil
	Detail string // what is wrong and what the bound is
}

func (e *FrameError) Error() string { return e.Detail }

// Answer is the last reply that the sender of the broken frame gets. Its Key
// is e.Key, so it points into the decoded buffer.
func (e *FrameError) Answer() Reply {
	return Reply{Op: e.Op, Status: StatusError, ID: e.ID, Key: e.Key, Code: CodeMalformed, Message: []byte(e.Detail)}
}

// ArgumentError is a well-formed frame with a bad argument: answered with CodeBadArgument.
type ArgumentError struct{ Detail string }

func (e *ArgumentError) Error() string { return e.Detail }

func argumentErrorf(format string, args ...any) error {
	return &ArgumentError{Detail: fmt.Sprintf(format, args...)}
}
