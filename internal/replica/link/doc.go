// Package link carries the messages of replica.Machine between the nodes of a
// cluster: one WebSocket per pair of nodes. It knows who a peer is, and nothing
// of what it says.
//
// # Who meets whom
//
// Every node dials every other one as long as no link to it stands, and accepts
// what the others dial; so a pair may have two links for a moment. The machine
// is told of both and closes one. A dial that fails is told as well, and whether
// it was refused: then nobody listens there, and the process is gone.
//
// # The handshake
//
// The cluster secret proves a node to another and never travels. All integers
// are big-endian; a name is a length byte and that many bytes; base64 is the
// one for URLs, unpadded.
//
//  1. dialler:  GET /internal/v1/replica, a WebSocket upgrade, with a header
//     Holdfast-Peer: base64 of
//     version u8 = 1 | time i64, milliseconds since 1970 | nonce, 32 bytes |
//     name of the dialler | name of the node it means to reach | mac, 32 bytes
//     mac = HMAC-SHA256(secret, "holdfast peer 1 request\n" | what stands before the mac)
//  2. acceptor: 401 where the mac does not fit; 403 where it does, but the
//     clocks are hours apart or this is another node than the one meant; each
//     with one line of text. Else 101 with a header
//     Holdfast-Peer: base64 of version u8 = 1 | nonce, 32 bytes | name of the acceptor
//  3. dialler:  a binary message, HMAC-SHA256(secret, "holdfast peer 1 dialler\n" | bytes of 1 | bytes of 2)
//  4. acceptor: a binary message, HMAC-SHA256(secret, "holdfast peer 1 acceptor\n" | bytes of 1 | bytes of 2)
//
// The link is up for the acceptor after 3 and for the dialler after 4. What
// each step is for: the first mac keeps everyone without the secret out before
// anything is set up for them. It can be replayed within the hours that its
// time is believed for (clocks may differ by one), so it is never all: 3 and 4
// each cover the nonce that the other side has just drawn, and a recorded one
// is worth nothing. A replay gets an upgraded connection that ends with the
// handshake's time, and of those there are few: each node's name has room for
// maxGuests, where the oldest makes room for the newest, and a real peer needs
// its place for two round trips only. The labels keep one side's proof from
// being the other's, so nothing that a node says can be reflected to it.
//
// A node proves with its first secret and accepts all that it has, two while
// the secret is being changed: [old] → [old, new] → [new, old] → [new], each
// step node by node.
//
// A node that meets itself, or one of its own name, is let in: the machine
// tells the two apart by their incarnations.
//
// # Messages
//
// Two streams of messages share the connection: control, and bulk. In each, a
// message is a u32 length and that many bytes. A WebSocket message carries a
// piece of one stream, at most 64 KiB, after a byte that says which: 1 control,
// 2 bulk. Whatever control there is goes before the next piece of bulk, so a
// heartbeat waits for one piece at most, and for what the kernel holds: where
// there is the option, TCP_NOTSENT_LOWAT keeps that small.
//
// # What is bounded, and what happens there
//
//   - control not yet sent: controlLimit bytes. Then the link is cut: a peer that
//     is so far behind does not hear heartbeats in time either.
//   - bulk not yet sent: one message, for the next one is pulled from the owner
//     when it is gone. A slow peer costs its place in the owner's log, and the
//     owner ends its stream when that is overwritten.
//   - a write that makes no progress for Config.Timeout, and a handshake that
//     takes longer: the connection is cut.
//   - links of one name: maxLinks; connections of one name in the handshake:
//     maxGuests. The newest link is refused; the oldest guest makes room.
//   - a message: maxControlBytes, maxBulkBytes; a WebSocket message: pieceBytes.
//     What is longer ends the link, before memory is set aside for it.
//
// A link that stands and is silent has no deadline here: to notice is the
// machine's part, which knows when this process was paused and the others were not.
//
// Lock order: the owner's, then Transport.mu or outbox.mu, never both of these.
// Neither is held over I/O or a call of the owner.
package link
