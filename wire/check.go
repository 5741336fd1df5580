package wire

// Check finds what is answered with error 4 and leaves the connection open; its
// error is an *ArgumentError that names the argument and its bound. A server
// calls it after Decode, a client before AppendRequest: hence it also refuses
// what Decode would have refused, such as a hello too long for a frame. It does
// not look at the characters of the key (Decode did; a client calls CheckKey),
// nor at bounds that are the server's to choose.
func (r *Request) Check() error {
	if unknown := r.Flags &^ r.Op.flags(); unknown != 0 {
		return argumentErrorf("flags: unknown bits 0x%02x; a %v knows 0x%02x", byte(unknown), r.Op, byte(r.Op.flags()))
	}
	if !r.Op.takesKey() {
		return r.checkKeyless()
	}
	if len(r.Key) == 0 || len(r.Key) > MaxKeyBytes {
		return argumentErrorf("key: %d bytes; 1 to %d", len(r.Key), MaxKeyBytes)
	}
	if r.Op == OpAcquire {
		return r.checkAcquire()
	}
	return nil
}

func (r *Request) checkKeyless() error {
	if len(r.Key) > 0 {
		return argumentErrorf("key: %d bytes; a %v has none", len(r.Key), r.Op)
	}
	switch r.Op {
	case OpPing:
		return nil
	case OpCancel:
		if r.Target == 0 {
			return argumentErrorf("target: 0; the id of a pending acquire, 1 to 4294967295")
		}
		return nil
	case OpHello:
		return r.checkHello()
	}
	return argumentErrorf("op: 0x%02x; H, A, R, E, C or P", byte(r.Op))
}

// flags returns the bits that requests of this op know.
func (o Op) flags() Flags {
	if o == OpAcquire {
		return flagsKnown
	}
	return 0
}

func (r *Request) checkAcquire() error {
	if r.Flags&FlagShared != 0 && r.Slots > 1 {
		return argumentErrorf("slots: %d with SHARED; 0 or 1", r.Slots)
	}
	if r.Flags&FlagRetry != 0 && r.Ticket.IsZero() {
		return argumentErrorf("ticket: zero with RETRY; the %d random bytes of the attempt that is repeated", TicketBytes)
	}
	return nil
}

func (r *Request) checkHello() error {
	if r.Version != Version {
		return argumentErrorf("version: %d; must be %d", r.Version, Version)
	}
	if len(r.Owner) > MaxOwnerBytes {
		return argumentErrorf("owner: %d bytes; at most %d", len(r.Owner), MaxOwnerBytes)
	}
	if !isText(r.Owner) {
		return argumentErrorf("owner: %s; valid UTF-8 without control characters", textFault(r.Owner))
	}
	if !isText(r.Software) {
		return argumentErrorf("software: %s; valid UTF-8 without control characters", textFault(r.Software))
	}
	if n := r.helloBytes(); n > maxBodyBytes {
		return argumentErrorf("auth and software: %d and %d bytes; all fields of a hello at most %d together, these are %d",
			len(r.Auth), len(r.Software), maxBodyBytes, n)
	}
	return nil
}

// CheckKey says what keeps key from being the key of a lock: 1 to MaxKeyBytes
// bytes of valid UTF-8 without control characters. Its error is an
// *ArgumentError. It keeps no reference to key, so that CheckKey([]byte(s))
// does not copy the string s.
func CheckKey(key []byte) error {
	if len(key) == 0 || len(key) > MaxKeyBytes {
		return argumentErrorf("key: %d bytes; 1 to %d", len(key), MaxKeyBytes)
	}
	if !isText(key) {
		return argumentErrorf("key: %s; valid UTF-8 without control characters", textFault(key))
	}
	return nil
}
