package replica

// gate lets replies go once a standby has acknowledged their events.
type gate struct {
	open    Position // everything up to it was let go
	alone   bool
	trimmed Position
	trimAt  Time
}

// acked takes in how far a follower has come.
func (m *Machine) acked(r Rank, msg *Ack) {
	out := &m.peers[r].out
	if out.kind != outStream || out.fetch || out.id != msg.ID || m.role != Active || out.snap != snapNone {
		return
	}
	if m.pos.Less(msg.Position) || msg.Position.Less(out.acked) || !m.lineage.covers(m.pos, msg.Position) {
		return
	}
	out.acked, out.synced = msg.Position, true
	if !msg.Position.Less(out.mark) {
		out.mark = Position{}
	}
	m.watchGate()
}

// watchGate opens the gate as far as one synced standby has acknowledged. With
// none it goes on alone: a cluster that lost its last standby still serves.
func (m *Machine) watchGate() {
	if m.role != Active {
		return
	}
	m.trimEnded()
	if !m.cfg.Ack {
		return
	}
	best, standbys := Position{}, 0
	m.each(func(r Rank, p *peer) {
		if !p.out.synced || !m.alive(r) {
			return
		}
		if standbys++; best.Less(p.out.acked) {
			best = p.out.acked
		}
	})
	if standbys == 0 && m.frozen != 0 {
		return // it wakes up, or another is active too: that nobody is heard says nothing yet
	}
	if alone := standbys == 0; alone != m.gate.alone {
		m.gate.alone = alone
		if alone {
			m.note(FactGateAlone, Nobody, "")
		}
	}
	if standbys == 0 {
		best = m.pos
	}
	m.openGate(best)
}

func (m *Machine) openGate(to Position) {
	if m.cfg.Ack && m.gate.open.Less(to) {
		m.gate.open = to
		m.act.do(ReleaseGate{Position: to})
	}
}

// trimEnded tells how far every listed peer, present or not, has acknowledged:
// what ended before can't come back from any of them.
func (m *Machine) trimEnded() {
	if len(m.cfg.Names) == 1 || m.frozen != 0 || m.now < m.gate.trimAt {
		return
	}
	m.gate.trimAt = m.now.Add(m.cfg.Heartbeat)
	least := m.pos
	m.each(func(r Rank, p *peer) {
		if p.out.acked.Less(least) { // nothing, while it is not in step
			least = p.out.acked
		}
	})
	if m.gate.trimmed.Less(least) && least.Epoch == m.pos.Epoch {
		m.gate.trimmed = least
		m.act.do(TrimEnded{Position: least})
	}
}
