// Package fixture has goroutines and channels.
package fixture

type queue struct {
	wake chan struct{} // want: channel type
}

func (q *queue) run() {
	go q.run() // want: starts a goroutine
	select {   // want: select
	case <-q.wake:
	default:
	}
	q.wake <- struct{}{} // want: sends on a channel
}
