package locks

import "bytes"

// longKeys keeps the keys that do not fit into their entry, in slabs by size.
type longKeys struct {
	k32   slab[[32]byte]
	k64   slab[[64]byte]
	k128  slab[[128]byte]
	k256  slab[[256]byte]
	k512  slab[[512]byte]
	k1024 slab[[1024]byte]
}

func newLongKeys() longKeys {
	return longKeys{
		newSlab[[32]byte](), newSlab[[64]byte](), newSlab[[128]byte](),
		newSlab[[256]byte](), newSlab[[512]byte](), newSlab[[1024]byte](),
	}
}

// at returns the room of key number id of n bytes.
func (k *longKeys) at(id uint32, n int) []byte {
	switch {
	case n <= 32:
		return k.k32.at(id)[:n]
	case n <= 64:
		return k.k64.at(id)[:n]
	case n <= 128:
		return k.k128.at(id)[:n]
	case n <= 256:
		return k.k256.at(id)[:n]
	case n <= 512:
		return k.k512.at(id)[:n]
	}
	return k.k1024.at(id)[:n]
}

func (k *longKeys) alloc(n int) uint32 {
	switch {
	case n <= 32:
		return k.k32.alloc()
	case n <= 64:
		return k.k64.alloc()
	case n <= 128:
		return k.k128.alloc()
	case n <= 256:
		return k.k256.alloc()
	case n <= 512:
		return k.k512.alloc()
	}
	return k.k1024.alloc()
}

func (k *longKeys) release(id uint32, n int) {
	switch {
	case n <= 32:
		k.k32.release(id)
	case n <= 64:
		k.k64.release(id)
	case n <= 128:
		k.k128.release(id)
	case n <= 256:
		k.k256.release(id)
	case n <= 512:
		k.k512.release(id)
	default:
		k.k1024.release(id)
	}
}

// keyOf returns the key's bytes in place: copy them before anything changes.
func (t *Table) keyOf(e *entry) []byte {
	if e.keyLen <= inlineKey {
		return e.inline[:e.keyLen]
	}
	return t.long.at(e.longKey, int(e.keyLen))
}

// find returns the entry of key, 0 if nothing stands on it.
func (t *Table) find(key []byte, hash uint32) uint32 {
	for id := t.byKey.first(hash); id != 0; id = t.byKey.next(id) {
		if bytes.Equal(t.keyOf(t.entries.at(id)), key) {
			return id
		}
	}
	return 0
}

func (t *Table) newEntry(key []byte, hash uint32, slots uint16) uint32 {
	id := t.entries.alloc()
	e := t.entries.at(id)
	e.keyLen, e.slots, e.reign = uint16(len(key)), slots, t.reign.number
	copy(e.inline[:], key)
	if len(key) > inlineKey {
		e.longKey = t.long.alloc(len(key))
		copy(t.long.at(e.longKey, len(key)), key)
	}
	t.byKey.insert(id, hash)
	t.keyBytes += int64(len(key))
	return id
}

// dropIfEmpty forgets a key on which nothing stands any more.
func (t *Table) dropIfEmpty(id uint32) {
	e := t.entries.at(id)
	if e.root != 0 || e.qhead != 0 {
		return
	}
	t.byKey.remove(id)
	t.keyBytes -= int64(e.keyLen)
	if e.keyLen > inlineKey {
		t.long.release(e.longKey, int(e.keyLen))
	}
	e.keyLen = 0 // walks pass it over
	t.entries.release(id)
}
