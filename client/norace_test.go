//go:build !race

package client

const poolIsLeaky = false
