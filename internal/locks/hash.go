package locks

import (
	"encoding/binary"
	"math/bits"
)

// Hashing by folded 64×64→128 bit products over a secret seed: two
// multiplications for a short key. Whoever does not know the seed cannot
// choose keys that collide.

const (
	mixA = 0x9e3779b97f4a7c15 // 2^64 / golden ratio
	mixB = 0xd6e8feb86659fd93
)

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func hashBytes(seed uint64, b []byte) uint32 {
	h := seed ^ uint64(len(b))*mixA
	for len(b) > 16 {
		h = mix(binary.LittleEndian.Uint64(b)^mixA^h, binary.LittleEndian.Uint64(b[8:])^mixB)
		b = b[16:]
	}
	var x, y uint64
	switch {
	case len(b) >= 8:
		x = binary.LittleEndian.Uint64(b)
		y = binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		x = uint64(binary.LittleEndian.Uint32(b))
		y = uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		x = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	h = mix(x^mixA^h, y^mixB^seed)
	return fold(h)
}

func hashPair(seed, a, b uint64) uint32 {
	return fold(mix(a^mixA^seed, b^mixB) ^ seed)
}

func fold(h uint64) uint32 {
	h = mix(h, mixA)
	return uint32(h ^ h>>32)
}
