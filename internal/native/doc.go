// Package native is the TCP server of Holdfast's native protocol: everything
// that protocol.md says about connections, on top of a node that decides about
// locks and a codec (package wire) that knows the frames.
//
// # One connection
//
// A connection is one goroutine, its reader. It takes all that the socket has,
// decodes the frames in place, runs them as one batch through its session, and
// writes out what the batch brought about. It is also the only one to close the
// connection: everybody else who finds that it must end says why (interrupt)
// and wakes the reader.
//
// Replies arrive through Push, under the node's mutex, from whichever goroutine
// made them: the reader itself, another connection's, or the node's timer. Push
// only appends to a buffer. Flush, after the mutex, writes it out with
// non-blocking writes; one goroutine at a time has the writer's role, the others
// leave their bytes to it. Only where a socket is full does a second goroutine,
// the drainer, take the role over until the socket has taken everything.
//
// # What is bounded, and what happens there
//
//   - requests pending on a connection: refused with error 5;
//   - answers that a client does not read: the connection is cut. Answers that
//     fell due without being asked for in that moment do not count, but they
//     count as pending until they are written; advice (L, W) is dropped instead;
//   - time for the hello, for the rest of a frame, for the last answers and for
//     what a client still sends after them: the connection is closed.
//
// # Where the node does not serve
//
// A standby's connections are like any other: each request is answered "moved"
// (M) with the active's address, as the node knows it when the answer goes out.
// When a node stops being the active, the node answers what is queued the same
// way and tells every session once; the connection stays, and is served again
// if the node takes over again.
//
// Lock order: node.mu, then conn.mu. Neither is held over I/O.
package native
