package web

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
)

// inbox takes the replies to one session's commands. A session of this package
// has at most one acquire and one other command under way, so two slots are
// enough: Push never waits.
type inbox chan locks.Reply

func newInbox() inbox { return make(inbox, 2) }

// Push keeps r, but for its key, which the handler knows.
func (b inbox) Push(r *locks.Reply) {
	if r.Op == 0 {
		return // advice about a grant: nobody listens once the request is answered
	}
	kept := *r
	kept.Key = nil
	select {
	case b <- kept:
	default:
		panic(fmt.Sprintf("web: a third reply on one request's session: %v to %v", r.Code, r.Op))
	}
}

// Flush does nothing: the handler takes the replies itself.
func (b inbox) Flush() {}

// source says where r comes from.
func (s *Server) source(r *http.Request, owner string) locks.Origin {
	return locks.Origin{Owner: owner, Remote: s.remote(r), Transport: "http", Identity: identity(r).Name}
}

// answerTimeout bounds the wait for a reply that the node owes at once.
const answerTimeout = 5 * time.Second

// ask runs one command that does not queue, on a session of its own. ok is false
// where no answer came: whether the command was done is not known then.
func (s *Server) ask(ctx context.Context, from locks.Origin, c locks.Command) (r locks.Reply, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	box := newInbox()
	sess := s.node.Open(from, box)
	defer end(sess)
	do(sess, c)
	select {
	case r = <-box:
		return r, true
	case <-ctx.Done():
		return r, false
	}
}

// do runs one command.
func do(sess *node.Session, c locks.Command) {
	defer crash()
	sess.Do([]locks.Command{c})
}

// end closes a session.
func end(sess *node.Session) {
	defer crash()
	sess.Close()
}

// crash, deferred, ends the process when what it is deferred around panics.
// net/http would recover a panic of the table and leave the node's mutex locked:
// a node that starts anew is better than one that never answers anybody again.
func crash() {
	if failure := recover(); failure != nil {
		stack := debug.Stack()
		go panic(fmt.Sprintf("web: %v\n\n%s", failure, stack)) // where nobody recovers it
		select {}
	}
}
