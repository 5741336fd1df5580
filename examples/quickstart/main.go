// Quickstart takes a lock, shows its fencing token and gives the lock back.
// It asks the nodes named on the command line, or else 127.0.0.1:7620.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"holdfast/client"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(addrs []string) error {
	if len(addrs) == 0 {
		addrs = []string{"127.0.0.1:7620"}
	}
	c, err := client.New(addrs)
	if err != nil {
		return err
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the longest wait
	defer cancel()
	lock, err := c.Acquire(ctx, "reports/daily", client.WithLease(30*time.Second))
	if err != nil {
		return err
	}
	fmt.Printf("holding %q until %s, fencing token %d\n",
		lock.Key(), lock.Until().Format(time.TimeOnly), lock.Token())

	// Work here, passing lock.Token() to whatever the lock protects.

	return lock.Release(ctx)
}
