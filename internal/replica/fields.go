package replica

import "time"

// What each message consists of, in the order of the wire. New fields go to
// the end of a message and are read only if bytes are left for them.

func (m *Hello) fields(c *coder) {
	c.text(&m.Name, maxNameBytes)
	c.rank(&m.Rank)
	number(c, &m.Incarnation)
	c.u16(&m.Major)
	c.u16(&m.Minor)
	c.texts(&m.Names, MaxNodes, maxNameBytes)
	number(c, &m.Wall)
	c.span(&m.Uptime)
	c.text(&m.Software, maxTextBytes)
	c.text(&m.Native, maxAddressBytes)
	c.texts(&m.HTTP, maxAddresses, maxAddressBytes)
	c.blob(&m.Limits, maxLimitBytes)
	c.position(&m.Position)
	c.lineage(&m.Lineage)
}

func (m *Refuse) fields(c *coder) {
	c.rank(&m.From)
	c.byte((*byte)(&m.Code))
	c.text(&m.Text, maxTextBytes)
}

func (m *Heartbeat) fields(c *coder) {
	c.u64(&m.Nonce)
	c.u64(&m.Echo)
	c.byte((*byte)(&m.Role))
	if m.Role == 0 || m.Role >= numRoles {
		c.fail(errBound)
	}
	c.flags(&m.Ask, &m.Stopping, &m.Complete, &m.Synced, &m.Yields, &m.Frozen, &m.Barred, &m.Waking)
	c.position(&m.Position)
	number53(c, &m.Highest)
	c.rank(&m.Active)
	number53(c, &m.ActiveEpoch)
	c.span(&m.ActiveAge)
	c.byte((*byte)(&m.Hears))
	c.flags(&m.TakeBacksOff)
	c.spans(&m.TakeBacks)
}

// spans is a list of at most maxTakeBacks durations.
func (c *coder) spans(v *[]time.Duration) {
	n := c.count(len(*v), maxTakeBacks)
	if c.reading {
		*v = make([]time.Duration, n)
	}
	for i := range n {
		c.span(&(*v)[i])
	}
}

func (m *Follow) fields(c *coder) {
	c.u64(&m.ID)
	c.position(&m.Position)
	c.lineage(&m.Lineage)
	c.flags(&m.Whole, &m.Anew)
}

func (m *Resume) fields(c *coder)   { c.u64(&m.ID) }
func (m *Diverged) fields(c *coder) { c.u64(&m.ID) }

func (m *Chunk) fields(c *coder) {
	c.u64(&m.ID)
	c.position(&m.Position)
	c.flags(&m.First, &m.Last)
	if m.First {
		c.lineage(&m.Lineage)
	}
	number53(c, &m.Highest)
	c.blob(&m.Events, maxStateBytes)
}

func (m *Stream) fields(c *coder) {
	c.u64(&m.ID)
	number53(c, &m.Epoch)
	number53(c, &m.First)
	if m.First == 1 {
		c.position(&m.Prev)
		c.lineage(&m.Lineage)
	}
	number53(c, &m.Highest)
	c.blob(&m.Events, maxStateBytes)
}

func (m *Ack) fields(c *coder) {
	c.u64(&m.ID)
	c.position(&m.Position)
}

func (m *Lost) fields(c *coder) { c.u64(&m.ID) }

func (m *Hash) fields(c *coder) {
	c.u64(&m.ID)
	c.position(&m.Position)
	c.u64(&m.Hash)
}

func (m *Prepare) fields(c *coder) {
	c.u64(&m.ID)
	c.position(&m.Position)
	number53(c, &m.Highest)
	c.u64(&m.Hash)
}

func (m *Prepared) fields(c *coder) {
	c.u64(&m.ID)
	c.flags(&m.OK)
}

func (m *Activate) fields(c *coder) {
	c.u64(&m.ID)
	c.position(&m.Position)
	number53(c, &m.Highest)
	c.byte((*byte)(&m.Why))
	c.flags(&m.TakeBacksOff)
	number(c, &m.OffFor)
	c.spans(&m.TakeBacks)
}

func (m *TakeBack) fields(*coder) {}

func (m *Fetch) fields(c *coder) {
	c.u64(&m.ID)
	c.position(&m.Position)
	c.lineage(&m.Lineage)
	c.flags(&m.Whole)
}

func (m *Offer) fields(c *coder) {
	c.u64(&m.ID)
	c.flags(&m.Adopt, &m.Active, &m.Whole)
	c.position(&m.Position)
	c.lineage(&m.Lineage)
	number53(c, &m.Highest)
}

func (m *OfferChunk) fields(c *coder) {
	c.u64(&m.ID)
	c.flags(&m.Last)
	c.blob(&m.Events, maxStateBytes)
}

func (m *Merged) fields(c *coder)       { c.u64(&m.ID) }
func (m *OfferRefused) fields(c *coder) { c.u64(&m.ID) }
