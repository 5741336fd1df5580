// Package sim plays whole clusters in one goroutine, by seed: the real nodes
// with their tables, machines, logs and gates, on a virtual clock and a virtual
// network, with clients that use tickets and write to fenced resources, and with
// every fault that design/cluster.md lists. After each step it checks that page's invariants.
//
// A history is a function of its seed. A seed that fails is shrunk, by leaving
// out faults, to a short history that still fails, and printed.
//
// The simulation in internal/replica's tests has a toy in place of the table. It
// plays the machine alone, also with a state kept over a restart, which the
// node does not have yet, and its world is what the scripts there run in.
package sim
