package locks

// origins keeps each origin once, counted by the sessions and claims that name
// it. Number 0 is the empty origin.
type origins struct {
	list  []originUse
	free  []uint32
	known map[Origin]uint32
}

type originUse struct {
	origin *Origin
	uses   int
}

var noOrigin = &Origin{}

func newOrigins() origins {
	return origins{list: []originUse{{origin: noOrigin}}, known: map[Origin]uint32{}}
}

// keep counts one more use of o and returns its number.
func (x *origins) keep(o *Origin) uint32 {
	if o == nil || *o == *noOrigin {
		return 0
	}
	if id, ok := x.known[*o]; ok {
		x.list[id].uses++
		return id
	}
	own := *o
	var id uint32
	if n := len(x.free); n > 0 {
		id = x.free[n-1]
		x.free = x.free[:n-1]
	} else {
		id = uint32(len(x.list))
		x.list = append(x.list, originUse{})
	}
	x.list[id] = originUse{&own, 1}
	x.known[own] = id
	return id
}

// again counts one more use of a number.
func (x *origins) again(id uint32) uint32 {
	if id != 0 {
		x.list[id].uses++
	}
	return id
}

func (x *origins) drop(id uint32) {
	if id == 0 {
		return
	}
	u := &x.list[id]
	if u.uses--; u.uses == 0 {
		delete(x.known, *u.origin)
		*u = originUse{}
		x.free = append(x.free, id)
	}
}

func (x *origins) at(id uint32) *Origin { return x.list[id].origin }
