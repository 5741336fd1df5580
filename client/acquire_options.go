package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"holdfast/wire"
)

// AcquireOption sets something of one acquire. It is a value rather than a
// function so that passing options allocates nothing.
type AcquireOption struct {
	kind   optionKind
	n      int64
	ticket wire.Ticket
}

type optionKind uint8

const (
	optionNone optionKind = iota // the zero AcquireOption changes nothing
	optionLease
	optionWait
	optionAutoExtend
	optionMaxHold
	optionShared
	optionSlots
	optionBound
	optionTicket
)

// longest is the longest lease or wait that the protocol can say.
const longest = math.MaxUint32 * time.Millisecond

// defaultMaxHold is the longest hold of WithAutoExtend: a lock whose owner
// forgot it must not live as long as its process.
const defaultMaxHold = 24 * time.Hour

// WithLease sets after how long the server takes the lock back, rounded up to
// milliseconds; 0 = the server's default. Longer than the server's maximum is
// refused by the server.
func WithLease(lease time.Duration) AcquireOption {
	return AcquireOption{kind: optionLease, n: int64(lease)}
}

// WithWait bounds the time spent in the queue, beside the context's deadline;
// it must be positive. Without it, and without a deadline, an acquire waits
// until it is granted. TryAcquire never waits and takes no WithWait.
func WithWait(wait time.Duration) AcquireOption {
	return AcquireOption{kind: optionWait, n: int64(wait)}
}

// WithAutoExtend extends the lock in the background whenever a third of its
// lease has passed, retrying until Until, and for 24 h at most (WithMaxHold
// changes that). Without it the lease is the safety net that the caller chose.
func WithAutoExtend() AcquireOption { return AcquireOption{kind: optionAutoExtend} }

// WithMaxHold sets how long a lock with WithAutoExtend is held at most: it is
// lost at that time if it was not released before.
func WithMaxHold(d time.Duration) AcquireOption {
	return AcquireOption{kind: optionMaxHold, n: int64(d)}
}

// Shared asks for a shared (read) lock: any number of shared holders, never
// beside an exclusive one.
func Shared() AcquireOption { return AcquireOption{kind: optionShared} }

// WithSlots makes the key a semaphore with n slots, 1 to 65,535; 1 = an
// exclusive lock. Everyone who uses the key at one time must name the same n,
// else ErrMismatch.
func WithSlots(n int) AcquireOption { return AcquireOption{kind: optionSlots, n: int64(n)} }

// BoundToConnection makes the server release the key soon (by default 5 s)
// after the connection is lost, so that a crash frees it before its lease
// ends. The client moves the lock to another connection when one drops.
func BoundToConnection() AcquireOption { return AcquireOption{kind: optionBound} }

// WithTicket names the attempt: whoever repeats an acquire of the same key
// with the same ticket gets the same grant, or keeps the same place in the
// queue, in another process too. It must be 16 bytes from a cryptographic
// random source. Default: a fresh ticket for each call.
func WithTicket(ticket [16]byte) AcquireOption {
	return AcquireOption{kind: optionTicket, ticket: ticket}
}

// spec is one acquire as its options want it.
type spec struct {
	flags   wire.Flags
	leaseMS uint32
	slots   uint16
	ticket  wire.Ticket
	wait    time.Duration // 0 = no bound
	auto    bool
	maxHold time.Duration // 0 = no bound
	endless bool          // no bound unless the caller names one
	patient bool
	parent  context.Context // of the Lock's context; nil = none
}

// set applies opts and says what is wrong with them.
func (s *spec) set(key string, opts []AcquireOption) error {
	if err := wire.CheckKey([]byte(key)); err != nil {
		return err
	}
	for i := range opts {
		if err := s.apply(&opts[i]); err != nil {
			return err
		}
	}
	switch {
	case s.flags&wire.FlagShared != 0 && s.slots > 1:
		return fmt.Errorf("WithSlots: %d together with Shared: a semaphore has no shared mode", s.slots)
	case s.flags&wire.FlagTry != 0 && s.wait != 0:
		return errors.New("WithWait: TryAcquire does not wait; use Acquire")
	case s.maxHold != 0 && !s.auto:
		return errors.New("WithMaxHold: needs WithAutoExtend; without it the lease ends the lock")
	case s.auto && s.maxHold == 0 && !s.endless:
		s.maxHold = defaultMaxHold
	}
	return nil
}

func (s *spec) apply(o *AcquireOption) (err error) {
	switch o.kind {
	case optionLease:
		s.leaseMS, err = milliseconds("WithLease", time.Duration(o.n))
	case optionWait:
		if o.n <= 0 {
			return fmt.Errorf("WithWait: %v; more than 0: TryAcquire does not wait, and Acquire without WithWait waits without bound", time.Duration(o.n))
		}
		_, err = milliseconds("WithWait", time.Duration(o.n))
		s.wait = time.Duration(o.n)
	case optionAutoExtend:
		s.auto = true
	case optionMaxHold:
		if o.n <= 0 {
			return fmt.Errorf("WithMaxHold: %v; more than 0", time.Duration(o.n))
		}
		s.maxHold = time.Duration(o.n)
	case optionShared:
		s.flags |= wire.FlagShared
	case optionSlots:
		if o.n < 1 || o.n > math.MaxUint16 {
			return fmt.Errorf("WithSlots: %d; 1 to %d", o.n, math.MaxUint16)
		}
		s.slots = uint16(o.n)
	case optionBound:
		s.flags |= wire.FlagBound
	case optionTicket:
		if o.ticket.IsZero() {
			return errors.New("WithTicket: all zero; 16 bytes from a cryptographic random source")
		}
		s.ticket = o.ticket
	}
	return err
}

// milliseconds rounds d up, so that nothing positive becomes 0, which means
// something else.
func milliseconds(name string, d time.Duration) (uint32, error) {
	if d < 0 || d > longest {
		return 0, fmt.Errorf("%s: %v; 0 to %v", name, d, longest)
	}
	return uint32((d + time.Millisecond - 1) / time.Millisecond), nil
}
