//go:build race

package client

// Under -race sync.Pool throws a quarter of what it is given away.
const poolIsLeaky = true
