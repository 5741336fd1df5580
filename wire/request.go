package wire

import "encoding/binary"

// minRequestBytes is the least that the fields of a request may have, or -1
// for an op that no request has. A hello is first asked for its version only:
// another version may well have other fields, and its sender should be told
// about the version.
func minRequestBytes(op Op) int {
	switch op {
	case OpAcquire:
		return 4 + 4 + 2 + TicketBytes
	case OpRelease:
		return 8
	case OpExtend:
		return 8 + 4
	case OpCancel:
		return 4
	case OpPing:
		return 0
	case OpHello:
		return 2
	}
	return -1
}

// takesKey says whether requests of this op have a key.
func (o Op) takesKey() bool { return o == OpAcquire || o == OpRelease || o == OpExtend }

// AppendRequest appends the frame of r to dst and returns the longer slice. It
// allocates only if dst has to grow. An op that no request has is given no
// fields. It encodes what it is given, good or bad, and panics if that cannot
// be a frame at all: a key over MaxKeyBytes, or a hello over MaxFrameBytes. A
// request that passes Check never does.
func AppendRequest(dst []byte, r *Request) []byte {
	if r.Op == OpHello {
		return appendHello(dst, r)
	}
	all, f := appendFrame(dst, r.Op, byte(r.Flags), r.ID, r.Key, max(0, minRequestBytes(r.Op)))
	switch r.Op {
	case OpAcquire:
		_ = f[25] // one bounds check instead of four
		binary.BigEndian.PutUint32(f, r.LeaseMS)
		binary.BigEndian.PutUint32(f[4:], r.WaitMS)
		binary.BigEndian.PutUint16(f[8:], r.Slots)
		copy(f[10:], r.Ticket[:])
	case OpRelease:
		binary.BigEndian.PutUint64(f, r.Token)
	case OpExtend:
		binary.BigEndian.PutUint64(f, r.Token)
		binary.BigEndian.PutUint32(f[8:], r.LeaseMS)
	case OpCancel:
		binary.BigEndian.PutUint32(f, r.Target)
	}
	return all
}

func (r *Request) helloBytes() int {
	return 2 + 2 + len(r.Auth) + 2 + len(r.Owner) + 2 + len(r.Software)
}

func appendHello(dst []byte, r *Request) []byte {
	all, f := appendFrame(dst, r.Op, byte(r.Flags), r.ID, r.Key, r.helloBytes())
	binary.BigEndian.PutUint16(f, r.Version)
	f = putStr(f[2:], r.Auth)
	f = putStr(f, r.Owner)
	putStr(f, r.Software)
	return all
}

// Decode reads one frame from the start of b and returns its size. n == 0 with
// a nil error means that more bytes are needed. An error is a *FrameError, and
// is given as soon as the bytes that show the fault are there. With n > 0 every
// field of r is set, those that the op does not have to zero; its slices point
// into b. Otherwise r is left as it was, or half filled in after an error.
func (r *Request) Decode(b []byte) (n int, err error) {
	k, err := checkHeader(b)
	if err != nil || k == needMore {
		return 0, err
	}
	op, key, end := Op(b[4]), keyOf(b, k), frameEnd(b)
	if err := checkRequestShape(b, op, key, end-HeaderBytes-k); err != nil {
		return 0, err
	}
	if len(b) < end {
		return 0, nil
	}
	*r = Request{} // cleared in place: a full literal would be built apart and copied, a third slower
	r.Op, r.Flags, r.ID, r.Key = op, Flags(b[5]), binary.BigEndian.Uint32(b[8:]), key
	f := b[HeaderBytes+k : end]
	switch op {
	case OpAcquire:
		_ = f[25]
		r.LeaseMS = binary.BigEndian.Uint32(f)
		r.WaitMS = binary.BigEndian.Uint32(f[4:])
		r.Slots = binary.BigEndian.Uint16(f[8:])
		r.Ticket = Ticket(f[10:])
	case OpRelease:
		r.Token = binary.BigEndian.Uint64(f)
	case OpExtend:
		r.Token = binary.BigEndian.Uint64(f)
		r.LeaseMS = binary.BigEndian.Uint32(f[8:])
	case OpCancel:
		r.Target = binary.BigEndian.Uint32(f)
	case OpHello:
		if err := r.decodeHello(b, f); err != nil {
			return 0, err
		}
	}
	return end, nil
}

// checkRequestShape judges what can be judged before the fields are there.
func checkRequestShape(b []byte, op Op, key []byte, fieldBytes int) error {
	least := minRequestBytes(op)
	switch {
	case least < 0:
		return headerFault(b, key, "unknown op 0x%02x: requests are H, A, R, E, C and P", byte(op))
	case len(key) > 0 && !op.takesKey():
		return headerFault(b, key, "key of %d bytes: a %v has none", len(key), op)
	case fieldBytes < least:
		return headerFault(b, key, "fields of %d bytes: a %v has at least %d", fieldBytes, op, least)
	}
	return nil
}

func (r *Request) decodeHello(b, f []byte) error {
	r.Version = binary.BigEndian.Uint16(f)
	if r.Version != Version {
		return headerFault(b, nil, "protocol version %d: must be %d", r.Version, Version)
	}
	f = f[2:]
	for _, str := range [...]struct {
		name string
		to   *[]byte
	}{{"auth", &r.Auth}, {"owner", &r.Owner}, {"software", &r.Software}} {
		var ok bool
		if *str.to, f, ok = takeStr(f); !ok {
			return headerFault(b, nil, "%s: the frame ends before it does", str.name)
		}
	}
	return nil
}
