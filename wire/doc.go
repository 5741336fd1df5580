// Package wire is the frame codec of Holdfast's native protocol, version 1.
//
// It turns frames into structs and back, and nothing else: no connection, no
// clock, no state. This page describes the protocol far enough to write a
// client or a server from scratch; docs/protocol.md is the same contract with
// more advice for authors of clients, and testdata holds golden frames for any
// language.
//
// # Frames
//
// A connection carries frames in both directions, requests one way, replies and
// pushes the other. All integers are unsigned and big-endian. A str is a u16
// length and that many bytes.
//
//	offset  size  field           meaning
//	0       4     length          bytes that follow this field: 8 + key length + fields; 8 to 8,192
//	4       1     op              ASCII letter; a reply echoes the op of its request
//	5       1     flags / status  request: flag bits; reply: status letter; push: 0
//	6       2     key length k    0 to 1,024
//	8       4     id              chosen by the client and echoed; 0 = ordered mode; push: 0
//	12      k     key             valid UTF-8 without U+0000 to U+001F and U+007F
//	12+k    …     fields          by op and status; bytes after the known ones are ignored
//
// Ignored bytes are the room to grow in: version 1 may gain fields at the end of
// a frame.
//
// # Requests
//
// The hello comes first. Nothing else has to be waited for: a client may send
// the hello and a thousand requests before it reads its first reply.
//
//	op  name     key  flags  fields
//	H   hello    no   –      version u16 = 1, auth str, owner str (at most 255 bytes), software str
//	A   acquire  yes  below  lease_ms u32, wait_ms u32, slots u16, ticket 16 bytes
//	R   release  yes  –      token u64
//	E   extend   yes  –      token u64, lease_ms u32
//	C   cancel   no   –      target u32: the id of a pending acquire of this connection, not 0
//	P   ping     no   –      –
//
// Auth is the auth token, or empty. Owner is a label for people who look at the
// server (host and process), software the client's name and version; both are
// text under the rule for keys.
//
// Lease_ms is the time after which the server takes the lock back, counted from
// the grant; 0 is the server's default, more than its maximum an error. Wait_ms
// bounds the time in the queue; 0 is no bound. Slots 0 or 1 asks for an
// exclusive lock, n > 1 for one of n slots of a semaphore; all who use a key at
// one time must name the same number. The flags of an acquire:
//
//	1   TRY        do not queue: grant now, or answer T at once
//	2   RETRY      this acquire may have been sent before: look its ticket up
//	4   SHARED     a shared (read) lock, beside others of its kind; not with slots > 1
//	8   BOUND      the grant ends with this connection, after the reattach grace
//	16  CONTENDED  push W to the holder when someone starts to wait for its key
//
// Release and extend work from any connection, for the token is enough. Extend
// sets the lease to lease_ms from now, longer or shorter, and moves the grant to
// the connection that asked.
//
// # Replies
//
// A letter means different things for different ops, so op and status are read
// together.
//
//	op     status  meaning                                     fields
//	H      A       welcome                                     version u16, role u8 (A active, S standby, J joining), node str,
//	                                                           active str, max_key u16, default_lease_ms u32, max_lease_ms u32,
//	                                                           software str, active node str
//	A      A       granted                                     token u64, lease_ms u32: what is left of it, rounded down
//	A      T       not granted within wait, or TRY and taken   –
//	A      C       withdrawn by a cancel, or its ticket was    –
//	               asked for again elsewhere
//	R      R       released; the next in line has the key      –
//	E      E       extended                                    lease_ms u32
//	R E    N       this token does not hold this key           –
//	C      C       withdrawn                                   –
//	C      N       nothing pending under that id               –
//	P      P       pong                                        –
//	A R E  M       moved: this node is not the active          address str (empty = none known), node str
//	any    X       error                                       code u16, message str
//
// The token of a grant is its fencing token: unique, and rising from grant to
// grant. A holder passes it to the resource that the lock protects, and the
// resource refuses smaller tokens than the largest it has seen.
//
//	code  meaning
//	1     malformed frame or protocol misuse; the connection is closed
//	2     not authenticated; the connection is closed
//	3     not allowed for this key
//	4     bad argument; the message says which, and its bound
//	5     a limit is reached: keys, waiters, pending requests, connections
//	6     unavailable for now
//	7     slots or mode differ from what stands on the key
//	8     internal
//
// # Pushes
//
// Pushes have status 0 and id 0. L and W are advice, dropped rather than cutting
// off a client that reads slowly. A client ignores pushes that it does not know.
//
//	op  key  meaning                                             fields
//	L   yes  lost: a grant made on this connection ended         token u64, reason u8: X lease ran out,
//	         without a release                                   F released by an operator, S superseded after a merge
//	M   no   moved: this node stops being the active; every      address str, node str
//	         pending acquire is answered M
//	W   yes  someone waits for a key held with CONTENDED         token u64, waiters u32
//
// # Matching replies to requests
//
// A reply echoes op, key and id. Of the pending requests with that op, key and
// id, the one sent first is answered.
//
// With ids other than 0, each reply comes as soon as it is known, in any order.
// With id 0, ordered mode, the server answers requests of one connection with
// the same op and key strictly in the order sent, and holds an answer back that
// would come too early; replies to different ops or keys still overtake each
// other. So the least client needs no numbers at all. In both modes, grants of
// one key to one connection come in the order of its acquires.
//
// # Tickets
//
// An acquire may outlive its connection: the reply gets lost, the node fails
// over. A ticket of 16 random bytes names the attempt, and repeating the acquire
// with RETRY on any connection then never queues twice and never takes a second
// grant. If the ticket holds the key, the same grant is answered again. If it
// stands in the queue, it keeps its place and deadline. Otherwise the acquire is
// a fresh one. Lease, wait, flags and slots of the first request stand. The
// attempt moves to the connection that asked last; what waits on another one is
// answered A C. RETRY with a zero ticket is error 4.
//
// A waiter with a ticket keeps its place for the reattach grace (5 s by default)
// when its connection is lost; one without leaves the queue at once.
//
// # The life of a connection
//
//   - The hello must come within 10 s, once, and first. A frame begun must be
//     complete within 30 s. Idle connections stay open.
//   - A frame that breaks the protocol is answered X with code 1, and the
//     connection closed: a length or key length out of range, a key that is not
//     text, a key in H, C or P, fields too short, an unknown op, another version
//     than 1. Locks held are not lost by it. The answer echoes op, id and (if it
//     is good) key; where the header could not be read it has op X and id 0.
//   - A bad argument is answered X with code 4, and the connection stays: see
//     Request.Check.
//   - A client that does not read its replies is cut off, once 1 MiB of them
//     (by default) has piled up.
//   - The end of input means that the client is gone, a half-close too; answers
//     already made still go out.
//
// # A conversation
//
// Client (C) and server (S), each frame with its bytes: length, op, flags or
// status, key length, id, key, fields. An acquire that waits (4) is withdrawn by
// a cancel (5), whose two replies may come in either order; a lock is released
// twice (7, 8); and a lease runs out (9).
//
//	C: hello #1 version=1 auth=0 bytes owner="web-1/4711" software="example/1.0"
//	   00000025 48 00 0000 00000001 00010000000a7765622d312f34373131000b6578616d706c652f312e30
//	C: acquire #2 "jobs" lease=30000ms wait=5000ms slots=0 ticket=5f1e93c0…
//	   00000026 41 00 0004 00000002 6a6f6273 000075300000138800005f1e93c07a444d0ba26e11d839f5602c
//	S: hello welcome #1 version=1 role=active node="n1" active="127.0.0.1:7620" max_key=1024 default_lease=30000ms max_lease=86400000ms software="holdfastd/1.0" active_node="n1"
//	   0000003c 48 41 0000 00000001 00014100026e31000e3132372e302e302e313a3736323004000000753005265c00000d686f6c6466617374642f312e3000026e31
//	S: acquire granted #2 "jobs" token=8008 lease=30000ms
//	   00000018 41 41 0004 00000002 6a6f6273 0000000000001f4800007530
//	C: acquire #3 "jobs" lease=0ms wait=0ms slots=0 flags=TRY
//	   00000026 41 01 0004 00000003 6a6f6273 0000000000000000000000000000000000000000000000000000
//	S: acquire not granted #3 "jobs"
//	   0000000c 41 54 0004 00000003 6a6f6273
//	C: acquire #4 "jobs" lease=0ms wait=60000ms slots=0
//	   00000026 41 00 0004 00000004 6a6f6273 000000000000ea60000000000000000000000000000000000000
//	C: cancel #5 target=4
//	   0000000c 43 00 0000 00000005 00000004
//	S: acquire withdrawn #4 "jobs"
//	   0000000c 41 43 0004 00000004 6a6f6273
//	S: cancel cancelled #5
//	   00000008 43 43 0000 00000005
//	C: extend #6 "jobs" token=8008 lease=60000ms
//	   00000018 45 00 0004 00000006 6a6f6273 0000000000001f480000ea60
//	S: extend extended #6 "jobs" lease=60000ms
//	   00000010 45 45 0004 00000006 6a6f6273 0000ea60
//	C: release #7 "jobs" token=8008
//	   00000014 52 00 0004 00000007 6a6f6273 0000000000001f48
//	S: release released #7 "jobs"
//	   0000000c 52 52 0004 00000007 6a6f6273
//	C: release #8 "jobs" token=8008
//	   00000014 52 00 0004 00000008 6a6f6273 0000000000001f48
//	S: release not holder #8 "jobs"
//	   0000000c 52 4e 0004 00000008 6a6f6273
//	C: acquire #9 "jobs" lease=1000ms wait=0ms slots=0
//	   00000026 41 00 0004 00000009 6a6f6273 000003e800000000000000000000000000000000000000000000
//	S: acquire granted #9 "jobs" token=8016 lease=1000ms
//	   00000018 41 41 0004 00000009 6a6f6273 0000000000001f50000003e8
//	S: lost #0 "jobs" token=8016 reason=expired
//	   00000015 4c 00 0004 00000000 6a6f6273 0000000000001f5058
//	C: ping #10
//	   00000008 50 00 0000 0000000a
//	S: ping pong #10
//	   00000008 50 50 0000 0000000a
//
// # Using the package
//
// [AppendRequest] and [AppendReply] append to the caller's buffer.
// [Request.Decode] and [Reply.Decode] read from the start of a buffer and return
// the size of the frame, or 0 while it is incomplete; decoded slices point into
// that buffer and are good for as long as its bytes are. None of them allocates
// except to grow the buffer or to describe a fault. Every limit is judged before
// anything is waited for or stored, so a buffer of 4 + [MaxFrameBytes] bytes is
// enough for any peer. And a verdict never depends on how the stream was cut
// into packets: each fault is told with the first bytes that show it, and no
// later byte changes it.
//
// There is no Reader or Writer: a server that decodes a whole buffer of
// pipelined requests and a client with its own timeouts want different ones.
package wire
