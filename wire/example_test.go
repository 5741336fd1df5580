package wire_test

import (
	"fmt"

	"holdfast/wire"
)

// The first bytes that a client sends: a hello and, without waiting for its
// answer, an acquire.
func ExampleAppendRequest() {
	out := wire.AppendRequest(nil, &wire.Request{Op: wire.OpHello, ID: 1, Version: wire.Version, Owner: []byte("web-1")})
	acquire := wire.Request{Op: wire.OpAcquire, ID: 2, Key: []byte("jobs"), LeaseMS: 30_000}
	if err := acquire.Check(); err != nil {
		fmt.Println(err)
		return
	}
	out = wire.AppendRequest(out, &acquire)
	fmt.Printf("%x\n", out)
	// Output:
	// 0000001548000000000000010001000000057765622d3100000000002641000004000000026a6f62730000753000000000000000000000000000000000000000000000
}

// Replies are decoded off the start of what has been read so far, until more
// bytes are needed.
func ExampleReply_Decode() {
	in := wire.AppendReply(nil, &wire.Reply{Op: wire.OpAcquire, Status: wire.StatusGranted, ID: 2, Key: []byte("jobs"), Token: 8008, LeaseMS: 30_000})
	in = wire.AppendReply(in, &wire.Reply{Op: wire.OpPing, Status: wire.StatusPong, ID: 3})
	in = append(in, 0, 0, 0) // the start of a frame to come

	var r wire.Reply
	for {
		n, err := r.Decode(in)
		if err != nil {
			fmt.Println(err)
			return
		}
		if n == 0 {
			break
		}
		fmt.Println(r.Outcome(), r.ID, r.Token)
		in = in[n:]
	}
	fmt.Println(len(in), "bytes left")
	// Output:
	// granted 2 8008
	// pong 3 0
	// 3 bytes left
}

func ExampleRequest_Check() {
	r := wire.Request{Op: wire.OpAcquire, Flags: wire.FlagShared, Key: []byte("jobs"), Slots: 3}
	fmt.Println(r.Check())
	// Output:
	// slots: 3 with SHARED; 0 or 1
}
