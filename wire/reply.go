package wire

import "encoding/binary"

// AppendReply appends the frame of r to dst and returns the longer slice. It
// allocates only if dst has to grow, and never fails: a text that does not fit
// into its frame (in practice only a Message) is cut at a rune boundary. The
// one thing it cannot mend is a key over MaxKeyBytes, since another key would
// be another lock: that is a bug in the caller, and it panics. An op and status
// that the protocol does not have are given no fields.
func AppendReply(dst []byte, r *Reply) []byte {
	switch kindOf(r.Op, r.Status) {
	case kindGranted:
		all, f := appendReply(dst, r, 12)
		binary.BigEndian.PutUint64(f, r.Token)
		binary.BigEndian.PutUint32(f[8:], r.LeaseMS)
		return all
	case kindExtended:
		all, f := appendReply(dst, r, 4)
		binary.BigEndian.PutUint32(f, r.LeaseMS)
		return all
	case kindLost:
		all, f := appendReply(dst, r, 9)
		binary.BigEndian.PutUint64(f, r.Token)
		f[8] = byte(r.Reason)
		return all
	case kindContended:
		all, f := appendReply(dst, r, 12)
		binary.BigEndian.PutUint64(f, r.Token)
		binary.BigEndian.PutUint32(f[8:], r.Waiters)
		return all
	case kindError:
		return appendError(dst, r)
	case kindMoved, kindMovedPush:
		return appendMoved(dst, r)
	case kindWelcome:
		return appendWelcome(dst, r)
	}
	all, _ := appendReply(dst, r, 0)
	return all
}

func appendReply(dst []byte, r *Reply, fieldBytes int) (all, fields []byte) {
	return appendFrame(dst, r.Op, byte(r.Status), r.ID, r.Key, fieldBytes)
}

func appendError(dst []byte, r *Reply) []byte {
	message := cut(r.Message, maxBodyBytes-len(r.Key)-4)
	all, f := appendReply(dst, r, 4+len(message))
	binary.BigEndian.PutUint16(f, uint16(r.Code))
	putStr(f[2:], message)
	return all
}

func appendMoved(dst []byte, r *Reply) []byte {
	room := maxBodyBytes - len(r.Key) - 4
	addr := cut(r.Addr, room)
	node := cut(r.Node, room-len(addr))
	all, f := appendReply(dst, r, 4+len(addr)+len(node))
	putStr(putStr(f, addr), node)
	return all
}

func appendWelcome(dst []byte, r *Reply) []byte {
	room := maxBodyBytes - len(r.Key) - welcomeBytes
	strs := [...][]byte{r.Node, r.Addr, r.Software, r.ActiveNode}
	size := welcomeBytes
	for i, s := range strs {
		strs[i] = cut(s, room)
		room -= len(strs[i])
		size += len(strs[i])
	}
	all, f := appendReply(dst, r, size)
	binary.BigEndian.PutUint16(f, r.Version)
	f[2] = byte(r.Role)
	f = putStr(putStr(f[3:], strs[0]), strs[1])
	binary.BigEndian.PutUint16(f, r.MaxKey)
	binary.BigEndian.PutUint32(f[2:], r.DefaultLeaseMS)
	binary.BigEndian.PutUint32(f[6:], r.MaxLeaseMS)
	putStr(putStr(f[10:], strs[2]), strs[3])
	return all
}

// Decode reads one frame from the start of b, as Request.Decode does. A push
// whose op is unknown decodes without fields, so that a client can ignore it;
// an unknown status in an answer is an error, as nobody could tell what became
// of the request.
func (r *Reply) Decode(b []byte) (n int, err error) {
	k, err := checkHeader(b)
	if err != nil || k == needMore {
		return 0, err
	}
	op, status, key, end := Op(b[4]), Status(b[5]), keyOf(b, k), frameEnd(b)
	kind := kindOf(op, status)
	if kind == kindUnknown {
		return 0, headerFault(b, key, "unknown status 0x%02x in an answer to op 0x%02x", byte(status), byte(op))
	}
	if size, least := end-HeaderBytes-k, kinds[kind].minBytes; size < least {
		return 0, headerFault(b, key, "fields of %d bytes: %s has at least %d", size, kinds[kind].name, least)
	}
	if len(b) < end {
		return 0, nil
	}
	*r = Reply{} // in place, as in Request.Decode
	r.Op, r.Status, r.ID, r.Key = op, status, binary.BigEndian.Uint32(b[8:]), key
	if !r.decodeFields(kind, b[HeaderBytes+k:end]) {
		return 0, headerFault(b, key, "a text runs past the end of the frame")
	}
	return end, nil
}

// decodeFields reads f, which has the kind's least number of bytes. It returns
// false if a str does not fit in it.
func (r *Reply) decodeFields(k kind, f []byte) (ok bool) {
	switch k {
	case kindGranted:
		r.Token = binary.BigEndian.Uint64(f)
		r.LeaseMS = binary.BigEndian.Uint32(f[8:])
	case kindExtended:
		r.LeaseMS = binary.BigEndian.Uint32(f)
	case kindLost:
		r.Token = binary.BigEndian.Uint64(f)
		r.Reason = Reason(f[8])
	case kindContended:
		r.Token = binary.BigEndian.Uint64(f)
		r.Waiters = binary.BigEndian.Uint32(f[8:])
	case kindError:
		r.Code = Code(binary.BigEndian.Uint16(f))
		r.Message, _, ok = takeStr(f[2:])
		return ok
	case kindMoved, kindMovedPush:
		if r.Addr, f, ok = takeStr(f); ok {
			r.Node, _, ok = takeStr(f)
		}
		return ok
	case kindWelcome:
		return r.decodeWelcome(f)
	}
	return true
}

func (r *Reply) decodeWelcome(f []byte) (ok bool) {
	r.Version = binary.BigEndian.Uint16(f)
	r.Role = Role(f[2])
	if r.Node, f, ok = takeStr(f[3:]); !ok {
		return false
	}
	if r.Addr, f, ok = takeStr(f); !ok || len(f) < 10 {
		return false
	}
	r.MaxKey = binary.BigEndian.Uint16(f)
	r.DefaultLeaseMS = binary.BigEndian.Uint32(f[2:])
	r.MaxLeaseMS = binary.BigEndian.Uint32(f[6:])
	if r.Software, f, ok = takeStr(f[10:]); !ok {
		return false
	}
	r.ActiveNode, _, ok = takeStr(f)
	return ok
}
