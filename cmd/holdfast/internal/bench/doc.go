// Package bench loads one server with lock requests and measures how it
// answers.
//
// An operation is an acquire and the release after it (closed, pipelined), a
// hand-off from one waiter to the next (handoff), or an acquire (held). Latency
// is that of one request; in handoff it runs from a release being sent to the
// next grant being read.
//
// The engine is one goroutine per connection. It answers all replies that one
// read brought and then writes all new requests at once; it allocates nothing
// per operation. Client and server usually share the processors, so what the
// engine costs is part of every figure.
package bench
