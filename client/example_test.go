package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"holdfast/client"
	"holdfast/client/internal/fakeserver"
)

// example runs f with the address of a server and a client that is connected to it.
func example(f func(ctx context.Context, addr string, c *client.Client) error) {
	addr, stop := fakeserver.New("n1").Listen()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := client.New([]string{addr})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if err := f(ctx, addr, c); err != nil {
		fmt.Println("error:", err)
	}
}

func Example() {
	example(func(ctx context.Context, addr string, _ *client.Client) error {
		c, err := client.New([]string{addr}, client.WithOwner("report-writer"))
		if err != nil {
			return err
		}
		defer c.Close()

		lock, err := c.Acquire(ctx, "reports/daily", client.WithLease(30*time.Second))
		if err != nil {
			return err
		}
		fmt.Println("working under token", lock.Token())
		return lock.Release(ctx)
	})
	// Output: working under token 1
}

func ExampleClient_Acquire() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		first, err := c.Acquire(ctx, "jobs")
		if err != nil {
			return err
		}
		time.AfterFunc(10*time.Millisecond, func() { first.Release(ctx) })

		// Waits in the queue for at most five seconds.
		second, err := c.Acquire(ctx, "jobs", client.WithWait(5*time.Second))
		if err != nil {
			return err
		}
		fmt.Println("the later grant has the larger token:", second.Token() > first.Token())
		return second.Release(ctx)
	})
	// Output: the later grant has the larger token: true
}

func ExampleClient_TryAcquire() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		lock, err := c.TryAcquire(ctx, "cleanup")
		if err != nil {
			return err
		}
		_, err = c.TryAcquire(ctx, "cleanup")
		fmt.Println("somebody else is at it:", errors.Is(err, client.ErrNotAcquired))
		return lock.Release(ctx)
	})
	// Output: somebody else is at it: true
}

func ExampleClient_Do() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		return c.Do(ctx, "reports/daily", func(ctx context.Context, lock *client.Lock) error {
			// ctx ends when the lock is lost: pass it on.
			fmt.Println("writing the report under token", lock.Token())
			return nil
		}, client.WithLease(time.Minute))
	})
	// Output: writing the report under token 1
}

func ExampleClient_Lead() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		return c.Lead(ctx, "scheduler/leader", func(ctx context.Context, lock *client.Lock) error {
			fmt.Println("leading in reign", lock.Token())
			// A real leader works until ctx ends; returning nil ends Lead.
			return nil
		}, client.WithLease(10*time.Second))
	})
	// Output: leading in reign 1
}

func ExampleLock_Context() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		lock, err := c.Acquire(ctx, "jobs", client.WithLease(300*time.Millisecond))
		if err != nil {
			return err
		}
		<-lock.Context().Done() // work that takes too long
		fmt.Println(context.Cause(lock.Context()))
		fmt.Println("not covered:", errors.Is(lock.Release(ctx), client.ErrNotHeld))
		return nil
	})
	// Output:
	// lock "jobs" (token 1) lost: its lease ran out
	// not covered: true
}

// The resource refuses whoever comes with a smaller token than it has seen. In
// SQL:
//
//	UPDATE report SET body = $1, fence = $2 WHERE id = $3 AND fence <= $2
func ExampleLock_Token() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		var fence uint64 // kept by the resource
		write := func(token uint64, text string) {
			if token < fence {
				fmt.Println("refused:", text)
				return
			}
			fence = token
			fmt.Println("written:", text)
		}

		slow, err := c.Acquire(ctx, "report", client.WithLease(300*time.Millisecond))
		if err != nil {
			return err
		}
		<-slow.Context().Done() // it is paused, and its lease ends
		quick, err := c.Acquire(ctx, "report")
		if err != nil {
			return err
		}
		write(quick.Token(), "from the new holder")
		write(slow.Token(), "from the one that was paused")
		return quick.Release(ctx)
	})
	// Output:
	// written: from the new holder
	// refused: from the one that was paused
}

func ExampleLock_Extend() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		lock, err := c.Acquire(ctx, "jobs", client.WithLease(10*time.Second))
		if err != nil {
			return err
		}
		for range 3 { // after each step of the work
			if err := lock.Extend(ctx, 10*time.Second); err != nil {
				return err // the lock is lost: stop
			}
		}
		fmt.Println("time left:", time.Until(lock.Until()).Round(time.Second))
		return lock.Release(ctx)
	})
	// Output: time left: 10s
}

func ExampleWithAutoExtend() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		lock, err := c.Acquire(ctx, "jobs",
			client.WithLease(6*time.Second),
			client.WithAutoExtend(),
			client.WithMaxHold(time.Hour))
		if err != nil {
			return err
		}
		select {
		case <-lock.Context().Done():
		case <-time.After(10 * time.Millisecond): // or work of many leases
		}
		fmt.Println("lost:", lock.Err() != nil)
		return lock.Release(ctx)
	})
	// Output: lost: false
}

// At most two deploys at a time.
func ExampleWithSlots() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		var held []*client.Lock
		for range 2 {
			slot, err := c.Acquire(ctx, "deploy", client.WithSlots(2))
			if err != nil {
				return err
			}
			held = append(held, slot)
		}
		_, err := c.TryAcquire(ctx, "deploy", client.WithSlots(2))
		fmt.Println("a third one has to wait:", errors.Is(err, client.ErrNotAcquired))
		for _, slot := range held {
			if err := slot.Release(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	// Output: a third one has to wait: true
}

// Many readers, or one writer.
func ExampleShared() {
	example(func(ctx context.Context, _ string, c *client.Client) error {
		reader, err := c.Acquire(ctx, "document", client.Shared())
		if err != nil {
			return err
		}
		another, err := c.Acquire(ctx, "document", client.Shared())
		if err != nil {
			return err
		}
		_, err = c.TryAcquire(ctx, "document")
		fmt.Println("a writer has to wait:", errors.Is(err, client.ErrNotAcquired))
		return errors.Join(reader.Release(ctx), another.Release(ctx))
	})
	// Output: a writer has to wait: true
}

func ExampleWithObserver() {
	example(func(ctx context.Context, addr string, _ *client.Client) error {
		c, err := client.New([]string{addr}, client.WithObserver(func(e client.Event) {
			if e.Kind == client.EventGranted || e.Kind == client.EventReleased {
				fmt.Println(e.Kind, e.Key)
			}
		}))
		if err != nil {
			return err
		}
		defer c.Close()
		return c.Do(ctx, "jobs", func(context.Context, *client.Lock) error { return nil })
	})
	// Output:
	// granted jobs
	// released jobs
}
