// Package web is the HTTP port of a node: the JSON API, the WebSocket, health, and
// the document that describes them.
//
// A request passes, in this order:
//
//  1. observe: the debug log, and what becomes of a handler that panics;
//  2. timeBody, secureHeaders: time for the body, headers of every answer;
//  3. checkMark, checkHost, checkOrigin, authenticate: who asks, before what is asked;
//  4. onlyActive: where this node is not the active, on to that (standby.go);
//  5. readInput: body, form or query, by the schema of the endpoint;
//  6. the handler, which makes an answer without choosing its format;
//  7. send: the one place that writes answers, good or bad, as JSON or text.
//
// Each request that uses the lock table opens a node.Session of its own, whose
// inbox has two slots. An acquire that waits is an attempt (acquire.go): its
// session is closed before anything is decided about it, so that what the table
// does afterwards can't pass unseen. What the client then can't receive is given
// back: at once where nobody knows the attempt's ticket, else after the grace.
//
// A WebSocket (ws*.go) has one session for as long as it locks. Its reader takes
// messages, its writer writes answers from a bounded output, its watch writes
// events as the client takes them. See socket.
//
// Peers come in before all of this (replica.go).
//
// Server.EndPolls lets all long polls end, so that Shutdown takes no longer than
// the answers do.
package web
