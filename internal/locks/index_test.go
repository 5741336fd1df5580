package locks

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIndexAgainstLists drives the index with few distinct hashes, so that
// chains are long, through growth and back down, and compares every step with
// plain lists in the order of insertion.
func TestIndexAgainstLists(t *testing.T) {
	for _, hashes := range []uint32{1, 7, 1000, 1 << 31} {
		rnd := rand.New(rand.NewPCG(1, uint64(hashes)))
		x := newIndex()
		want := map[uint32][]uint32{}
		hashOf := map[uint32]uint32{}
		var all []uint32
		for step := range 60_000 {
			growing := step%20_000 < 8_000
			if len(all) == 0 || rnd.IntN(4) < 1 || growing && rnd.IntN(4) > 0 {
				id := uint32(rnd.IntN(100_000) + 1)
				if _, ok := hashOf[id]; ok {
					continue
				}
				h := rnd.Uint32N(hashes) * 2654435761
				x.insert(id, h)
				want[h], hashOf[id] = append(want[h], id), h
				all = append(all, id)
			} else {
				i := rnd.IntN(len(all))
				id := all[i]
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
				h := hashOf[id]
				x.remove(id)
				delete(hashOf, id)
				want[h] = slices.DeleteFunc(want[h], func(v uint32) bool { return v == id })
			}
			if step%97 == 0 && len(all) > 0 {
				checkChain(t, &x, hashOf[all[rnd.IntN(len(all))]], want)
			}
		}
		for h := range want {
			checkChain(t, &x, h, want)
		}
		if int(x.n) != len(all) {
			t.Fatalf("counts %d records, has %d", x.n, len(all))
		}
	}
}

func checkChain(t *testing.T, x *index, hash uint32, want map[uint32][]uint32) {
	t.Helper()
	var got []uint32
	for id := x.first(hash); id != 0; id = x.next(id) {
		got = append(got, id)
	}
	if !slices.Equal(got, want[hash]) {
		t.Fatalf("hash %d: found %v, want %v in this order", hash, got, want[hash])
	}
}

func TestIndexShrinksAsItEmpties(t *testing.T) {
	x := newIndex()
	const n = 200_000
	for id := uint32(1); id <= n; id++ {
		x.insert(id, id*2654435761)
	}
	if x.size < n {
		t.Errorf("%d chains for %d records", x.size, n)
	}
	for id := uint32(1); id <= n; id++ {
		x.remove(id)
	}
	pages := 0
	for _, p := range x.nodes {
		if p != nil {
			pages++
		}
	}
	if pages != 0 || x.size > minChains || len(x.heads) > 2 {
		t.Errorf("empty, it keeps %d pages of nodes, %d chains, %d pages of heads", pages, x.size, len(x.heads))
	}
}

func TestSlabGivesEmptyChunksBack(t *testing.T) {
	s := newSlab[[3]uint32]()
	rnd := rand.New(rand.NewPCG(2, 2))
	var ids []uint32
	seen := map[uint32]bool{}
	for range 50 * chunkSize {
		id := s.alloc()
		if id == 0 || seen[id] {
			t.Fatalf("record %d was handed out twice, or is none", id)
		}
		if *s.at(id) != [3]uint32{} {
			t.Fatalf("record %d is not zeroed", id)
		}
		s.at(id)[1] = id
		seen[id] = true
		ids = append(ids, id)
	}
	rnd.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids {
		if s.at(id)[1] != id {
			t.Fatalf("record %d was overwritten", id)
		}
		s.release(id)
	}
	kept := 0
	for _, c := range s.recs {
		if c != nil {
			kept++
		}
	}
	if kept > 2 || s.n != 0 {
		t.Errorf("empty, it keeps %d chunks and counts %d records", kept, s.n)
	}
	if n := testing.AllocsPerRun(1000, func() { s.release(s.alloc()) }); n != 0 {
		t.Errorf("a lone record that comes and goes allocates %v times", n)
	}
}

func TestHashSpreadsLikeKeys(t *testing.T) {
	buckets := make([]int, 1024)
	key := []byte("tenant/0000000000/job")
	const n = 64 * 1024
	for i := range n {
		for j, v := 16, i; j > 6; j, v = j-1, v/10 {
			key[j] = byte('0' + v%10)
		}
		buckets[hashBytes(12345, key)%1024]++
	}
	for b, got := range buckets {
		if got < 64/3 || got > 64*3 {
			t.Fatalf("bucket %d got %d of %d keys that differ in digits only, want about 64", b, got, n)
		}
	}
	if hashBytes(1, key) == hashBytes(2, key) {
		t.Error("the seed changes nothing")
	}
}
