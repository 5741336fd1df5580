package replica

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// toy is a small state for the machine to replicate: exclusive locks with
// queues of tickets, and the set of tokens that ended. Its events are text.
type toy struct {
	held  map[string]toyGrant
	queue map[string][]string
	ended map[Token]bool
}

type toyGrant struct {
	token  Token
	ticket string
}

func newToy() *toy {
	return &toy{map[string]toyGrant{}, map[string][]string{}, map[Token]bool{}}
}

// fold applies one event: what does not fit is ignored.
//
//	epoch T          a reign begins
//	grant K T X      ticket X gets key K with token T; it leaves the queue
//	end K T          the grant ended
//	wait K X         ticket X queues
//	leave K X        ticket X leaves the queue
//	ended T          T ended, as another node knows
//	trim T           T need not be kept in the ended set any more
//	clear            a snapshot begins
//	reset K          a snapshot's next key
func (s *toy) fold(e string) {
	f := strings.Fields(e)
	var t Token
	if len(f) > 1 {
		fmt.Sscan(f[len(f)-1], &t)
	}
	switch f[0] {
	case "grant":
		fmt.Sscan(f[2], &t)
		s.held[f[1]] = toyGrant{t, f[3]}
		s.leave(f[1], f[3])
	case "end":
		if s.held[f[1]].token == t {
			delete(s.held, f[1])
		}
		s.ended[t] = true
	case "wait":
		s.queue[f[1]] = append(s.queue[f[1]], f[2])
	case "leave":
		s.leave(f[1], f[2])
	case "ended":
		s.ended[t] = true
	case "trim":
		delete(s.ended, t)
	case "clear":
		*s = *newToy()
	case "reset":
		delete(s.held, f[1])
		delete(s.queue, f[1])
	}
}

func (s *toy) leave(key, ticket string) {
	q := slices.DeleteFunc(slices.Clone(s.queue[key]), func(x string) bool { return x == ticket })
	if s.queue[key] = q; len(q) == 0 {
		delete(s.queue, key)
	}
}

func (s *toy) keys() []string {
	keys := slices.Collect(maps.Keys(s.held))
	for k := range s.queue {
		if _, ok := s.held[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (s *toy) keyEvents(k string) []string {
	events := []string{"reset " + k}
	if g, ok := s.held[k]; ok {
		events = append(events, fmt.Sprintf("grant %s %d %s", k, g.token, g.ticket))
	}
	for _, x := range s.queue[k] {
		events = append(events, "wait "+k+" "+x)
	}
	return events
}

// snapshot is a piece of the state: the next two keys after the cursor, which
// counts the keys of a fixed universe.
func (s *toy) snapshot(cursor uint64) (events []string, next uint64) {
	if cursor == 0 {
		events = append(events, "clear")
		for _, t := range slices.Sorted(maps.Keys(s.ended)) {
			events = append(events, fmt.Sprintf("ended %d", t))
		}
	}
	for i := range uint64(2) {
		if k := cursor + i; k < toyKeys {
			events = append(events, s.keyEvents(toyKey(k))...)
		}
	}
	if next = cursor + 2; next >= toyKeys {
		next = 0
	}
	return events, next
}

const toyKeys = 6

func toyKey(i uint64) string { return fmt.Sprintf("k%d", i) }

// sum is the hash of what is replicated.
func (s *toy) sum() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, s.String())
	return h.Sum64()
}

func (s *toy) String() string {
	b := make([]byte, 0, 256)
	for _, k := range s.keys() {
		b = append(append(b, k...), ':')
		if g, ok := s.held[k]; ok {
			b = append(append(b, g.ticket...), '#')
			b = strconv.AppendUint(b, uint64(g.token), 10)
		}
		for _, x := range s.queue[k] {
			b = append(append(b, '<'), x...)
		}
		b = append(b, ' ')
	}
	b = append(b, "ended:"...)
	for _, t := range slices.Sorted(maps.Keys(s.ended)) {
		b = append(strconv.AppendUint(b, uint64(t), 10), ' ')
	}
	return string(b)
}

// merge returns the events that turn the winner's state w into the merged one,
// but for the grants that the queues are due.
func (w *toy) merge(l *toy, b sabotage) (events []string) {
	if b == dropLosersTable {
		return nil
	}
	if b == forgetInheritedRelease {
		l.ended = nil
	}
	for _, t := range slices.Sorted(maps.Keys(l.ended)) {
		if k := w.keyOf(t); k != "" {
			events = append(events, fmt.Sprintf("end %s %d", k, t))
		} else if !w.ended[t] {
			events = append(events, fmt.Sprintf("ended %d", t))
		}
	}
	for _, e := range events {
		w.fold(e)
	}
	add := func(format string, args ...any) {
		e := fmt.Sprintf(format, args...)
		w.fold(e)
		events = append(events, e)
	}
	for _, k := range l.keys() {
		lg, ok := l.held[k]
		wg, taken := w.held[k]
		switch {
		case !ok || lg == wg || w.ended[lg.token] && b != forgetOwnRelease:
		case !taken:
			add("grant %s %d %s", k, lg.token, lg.ticket)
		case lg.token > wg.token:
			add("end %s %d", k, wg.token)
			add("grant %s %d %s", k, lg.token, lg.ticket)
		default:
			add("ended %d", lg.token)
		}
		for _, x := range l.queue[k] {
			if w.held[k].ticket != x && !slices.Contains(w.queue[k], x) {
				add("wait %s %s", k, x)
			}
		}
	}
	return events
}

func (s *toy) keyOf(t Token) string {
	for _, k := range s.keys() {
		if s.held[k].token == t {
			return k
		}
	}
	return ""
}

func encodeRun(events []string) []byte {
	var run []byte
	for _, e := range events {
		run = AppendEvent(run, []byte(e))
	}
	return run
}

func decodeRun(run []byte) (events []string) {
	for {
		e, rest, ok := NextEvent(run)
		if !ok {
			return events
		}
		events, run = append(events, string(e)), rest
	}
}

// sabotage breaks one rule, to show that the simulation notices.
type sabotage int

const (
	honest sabotage = iota
	reuseTokens
	promoteBehind
	dropLosersTable
	forgetInheritedRelease
	forgetOwnRelease
	serveAfterActivate
	ignoreFreeze
	ignoreWaking
	trimTooEarly
	openGateAtOnce
	loseParked
)
