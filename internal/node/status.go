package node

import (
	"sync"
	"time"

	"holdfast/internal/locks"
)

// Status is a node's view of itself and its cluster.
type Status struct {
	Name, Version string
	Role          Role
	Synced        bool      // active, or in step with the active
	Since         time.Time // of this role
	Reason        string    // of the last change of role
	Started       time.Time
	Epoch         locks.Token
	Seq           uint64 // events in this epoch
	Stats         locks.Stats
	Sessions      int
	Native        string
	HTTP          []string
	DefaultLease  time.Duration
	MaxLease      time.Duration
	ReattachGrace time.Duration
	Counts        map[string]uint64 // replies by code, since the start

	// The active, as far as known; empty where none is.
	ActiveName, ActiveNative string
	ActiveHTTP               []string
}

// Status reports what the node is now.
func (n *Node) Status() Status {
	n.mu.Lock()
	defer n.mu.Unlock()
	active := n.Active()
	epoch, seq := n.positionLocked()
	st := Status{
		Name: n.cfg.Name, Version: n.cfg.Version, Native: n.cfg.Native, HTTP: n.cfg.HTTP,
		Role: n.roleLocked(), Synced: n.machine.Synced(), Since: n.since, Reason: n.reason, Started: n.started,
		Epoch: epoch, Seq: seq, Stats: n.table.Stats(), Sessions: n.sessions.n,
		DefaultLease: n.cfg.Table.DefaultLease, MaxLease: n.cfg.Table.MaxLease, ReattachGrace: n.cfg.Table.ReattachGrace,
		Counts:     make(map[string]uint64, len(n.counts)),
		ActiveName: active.Name, ActiveNative: active.Native, ActiveHTTP: active.HTTP,
	}
	for _, c := range locks.Codes() {
		st.Counts[c.String()] = n.counts[c]
	}
	return st
}

// View shows one key, and the position in the event stream at which it was so.
func (n *Node) View(key []byte, maxHolders, maxWaiters int) (v locks.KeyView, epoch locks.Token, seq uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	epoch, seq = n.positionLocked()
	return n.table.View(n.clock.now(), key, maxHolders, maxWaiters), epoch, seq
}

// Rows is a snapshot of all keys, shared between its readers: it is never
// changed. While it was taken the table went on, so a key that came or went
// meanwhile may be missing or present.
type Rows struct {
	Rows  []locks.Row
	At    locks.Time // when it was begun
	Epoch locks.Token
	Seq   uint64 // when it was begun
}

const (
	rowPiece  = 1000        // rows copied under one hold of the mutex
	rowsFresh = time.Second // how long the snapshot of a large table serves
	rowsSmall = 10_000      // a table of fewer keys is copied anew each time
)

// rowCache keeps the last snapshot of a large table for all who look at it.
type rowCache struct {
	mu   sync.Mutex // guards what follows; held while a snapshot is taken, so that many viewers cost one walk
	last *Rows
}

// Rows returns every key, in no order of meaning: as of now, or where there
// are more than ten thousand, as of at most a second ago.
func (n *Node) Rows() *Rows {
	n.rows.mu.Lock()
	defer n.rows.mu.Unlock()
	if last := n.rows.last; last != nil && n.clock.now().Sub(last.At) < rowsFresh {
		return last
	}
	rows := n.copyRows()
	n.rows.last = nil
	if len(rows.Rows) > rowsSmall {
		n.rows.last = rows
	}
	return rows
}

func (n *Node) copyRows() *Rows {
	n.mu.Lock()
	rows := &Rows{Rows: make([]locks.Row, 0, n.table.Stats().Keys), At: n.clock.now()}
	rows.Epoch, rows.Seq = n.positionLocked()
	for cursor := uint32(0); ; {
		cursor = n.table.Scan(cursor, rowPiece, func(r *locks.Row) { rows.Rows = append(rows.Rows, *r) })
		n.mu.Unlock()
		if cursor == 0 {
			return rows
		}
		n.mu.Lock()
	}
}
