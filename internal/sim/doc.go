// Package sim plays whole clusters in one goroutine, by seed: the real nodes
// with their tables, machines, logs and gates, on a virtual clock and a virtual
// network, with clients that use tickets, and with every fault that
// design/cluster.md lists. After each step it checks that page's invariants.
//
// A history is a function of its seed. A seed that fails is shrunk, by leaving
// out faults, to a short history that still fails, and printed.
package sim
