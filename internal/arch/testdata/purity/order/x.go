// Package fixture lets the order of a map, or chance, decide.
package fixture

import (
	"maps"
	"math/rand/v2"
	"slices"
)

type set map[string]int

func walk(s set) {
	for range s { // want: ranges over a map
	}
	for range maps.Keys(s) { // want: ranges over a map: maps.Keys
	}
	for _, k := range slices.Sorted(maps.Keys(s)) {
		delete(s, k)
	}
	for range []string{} {
	}
}

func draw(seed uint64) int {
	r := rand.New(rand.NewPCG(seed, 0))
	return r.IntN(6) +
		rand.IntN(6) // want: unseeded randomness: math/rand/v2.IntN
}
