package locks

func (t *Table) Merge(now Time, other *Table, fx *Effects) {}

func (t *Table) Reign(now Time, floor Token, fx *Effects) (epoch Token) {
	t.Hear(floor)
	t.ev = Event{Kind: EventEpoch, Token: t.nextToken(now)}
	epoch = t.ev.Token
	t.commit(now, place{}, fx)
	return epoch
}
