package native

import "holdfast/wire"

// writesInline bounds the writes that one Flush does: it may be another
// connection's goroutine, which must not be kept by one that gets new answers
// all the time.
const writesInline = 8

// Flush writes what stands in the output, as far as the socket takes it. It
// does not wait: where the socket is full, a goroutine takes over.
func (c *conn) Flush() {
	c.mu.Lock()
	if c.out.writing || c.out.closed || c.out.failed || !c.fillOutput() {
		c.mu.Unlock()
		return
	}
	c.out.writing = true
	if c.raw != nil && c.writeInline() {
		c.out.giveUp()
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	go c.drain()
}

// writeInline writes with c.mu held, but for the writes themselves. It returns
// true where nothing is left to do: all is written, or nothing ever can be.
func (c *conn) writeInline() bool {
	for range writesInline {
		b := c.out.begin()
		c.mu.Unlock()
		n, err := c.writeSome(b)
		full := n < b.writing
		c.mu.Lock()
		if !c.written(n, err) || !c.fillOutput() {
			return true
		}
		if full {
			return false
		}
	}
	return false
}

func (c *conn) writeSome(b *buffer) (int, error) {
	if err := c.raw.Write(c.tryWrite); err != nil {
		return 0, err
	}
	return b.n, b.err
}

// drain has the writer's role until the socket has taken everything, the
// connection ends, or the reader wants the role. The reader's close waits for it.
func (c *conn) drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.out.giveUp()
	for c.out.free == nil && c.fillOutput() {
		if !c.writeHead() {
			return
		}
	}
}

// writeHead writes one buffer, waiting as long as it takes or the write
// deadline lets it. It holds c.mu but for the write, and needs the writer's
// role.
func (c *conn) writeHead() bool {
	b := c.out.begin()
	c.mu.Unlock()
	n, err := c.nc.Write(b.b[b.start:][:b.writing])
	c.mu.Lock()
	return c.written(n, err)
}

// written notes what a write did, with c.mu held.
func (c *conn) written(n int, err error) bool {
	c.out.wrote(n)
	if err != nil {
		c.out.failed = true
		c.interrupt(writeFailed)
	}
	return err == nil
}

// fillOutput makes answers whose turn has come once there is nothing else to
// write, so that they are made only as the socket takes them. It reports
// whether there is anything to write.
func (c *conn) fillOutput() bool {
	if p := c.pending; p != nil && c.out.head == nil && len(p.order.ripe) > 0 {
		p.order.release(func(r *wire.Reply) bool {
			c.srv.pointElsewhere(r) // as of now: it may have been held back for long
			return c.out.addIfRoom(r, nothing)
		})
	}
	return c.out.head != nil
}

// takeOver waits for the writer and takes its role for good.
func (c *conn) takeOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.closed = true
	if c.out.writing {
		free := make(chan struct{})
		c.out.free = free
		c.mu.Unlock()
		<-free
		c.mu.Lock()
	}
	c.out.writing = true
}

// writeRest writes the last answers until the deadline.
func (c *conn) writeRest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.out.failed && c.fillOutput() {
		c.writeHead()
	}
}
