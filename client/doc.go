// Package client takes distributed locks from Holdfast.
//
//	c, err := client.New([]string{"10.0.0.1:7620", "10.0.0.2:7620", "10.0.0.3:7620"})
//	…
//	lock, err := c.Acquire(ctx, "reports/daily", client.WithLease(30*time.Second))
//	if err != nil {
//		return err // nothing is held
//	}
//	defer lock.Release(ctx)
//	return writeReport(lock.Context(), lock.Token())
//
// # What a lock is
//
// A lock is a grant of a key for a time, the lease: after it the server takes
// the key back by itself, so that a holder that crashed keeps nobody waiting
// for long. Who asks for a key that is taken stands in a queue, strictly first
// come, first served. A Lock that is held has:
//
//   - Until, the time up to which it is surely held. It is counted on this
//     machine's monotonic clock from before the server's lease began, so it
//     never lies later than the server's own idea.
//   - Context, which ends when the lock is released or lost. Give it to
//     everything that may only run under the lock.
//   - Token, the fencing token: a number that is larger for each later grant
//     of the key.
//
// # What it guarantees, and what not
//
// Two holders never have the same token, and of two grants of a key the later
// one has the larger token. As long as a holder stops its work when its
// Context ends, nobody else works under the key at the same time, whatever the
// network does.
//
// But a program can be stopped between looking at the Context and acting: by
// the scheduler, a garbage collection, a suspended virtual machine. When it goes
// on, its lease may be over and the key somebody else's. No lock service can
// prevent that; the resource can, if it remembers the largest token it has
// seen and refuses smaller ones. That is what Token is for.
//
// Err and Until go by the clock behind time.Since. It runs on while a process
// is stopped, so Err tells the truth from the first call after that. It stands
// still while the machine is suspended (on Linux it is CLOCK_MONOTONIC): a laptop
// that wakes up learns of a lost lock from the server, or from its token being
// refused, rather than from Until.
//
// # Leases
//
// The lease should be a little longer than the work takes, and the work should
// end with the Context. Work of unknown length takes WithAutoExtend, which
// extends the lease in the background for as long as the process lives, or
// until WithMaxHold; a process that hangs then keeps the lock, which is why it
// is not the default. Extend does the same by hand.
//
// # Connections
//
// A Client holds one connection to each address, two if there is only one, and
// sends each request over the next one that leads to the active node. All its
// calls may be made by any number of goroutines at once; requests are
// pipelined, and none waits for another. When a node fails or hands over, the
// Client finds the next active by itself; holders keep their locks and waiters
// their places, and the callers do not notice.
//
// An acquire that is under way when its connection drops goes on elsewhere. Its
// ticket, 16 random bytes, names the attempt: the server answers a repeat with
// the same grant, or leaves it its place in the queue. While nodes answer, but
// none is the active, they are asked again every 50 to 200 ms. ErrNoActive is
// reported only if that has gone on for ten seconds; or, where no node can be
// reached at all, after as many tries as there are registered connections, and
// not within 5.5 s of the loss of an active, since a failover may be under way.
// WithPatience turns that off for acquires that wait without bound.
//
// A context that ends withdraws an acquire. If the grant was on its way
// already it is given back as soon as it arrives, so that no call that has
// returned an error leaves a lock behind.
//
// # Errors
//
// All errors work with errors.Is and errors.As. ErrNotAcquired is the ordinary
// outcome of a wait that was too short, and of TryAcquire for a key that is
// taken. ErrNotHeld, and the *LostError that says why, means that work was not
// covered to its end.
package client
