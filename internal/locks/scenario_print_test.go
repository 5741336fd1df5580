package locks_test

import (
	"fmt"
	"strings"
	"time"

	. "holdfast/internal/locks"
)

// print writes what a step brought about: the events, then who is told what.
func (s *scene) print(fx *Effects) {
	for i := range fx.Events {
		e := &fx.Events[i]
		if e.Kind == EventGrant {
			s.issued(e.Token)
		}
		l := line{words: []string{"event", e.Kind.String()}}
		l.key(e.Key)
		if e.Kind != EventEpoch || s.rawToken {
			l.pair("token", s.tokenName(e.Token))
		}
		l.pair("ticket", ticketName(e.Ticket))
		l.length("lease", e.Lease)
		l.length("wait", e.Wait)
		if e.Slots > 1 {
			l.pair("slots", fmt.Sprint(e.Slots))
		}
		l.flags(e.Flags)
		l.reason(e.Reason)
		l.number("place", e.Index)
		fmt.Fprintln(&s.out, l)
	}
	for i := range fx.Replies {
		s.printReply(&fx.Replies[i])
	}
}

func (s *scene) printReply(r *Reply) {
	l := line{words: []string{s.sessionName(r.To), r.Code.String()}}
	l.key(r.Key)
	l.number("ref", r.Ref)
	l.pair("token", s.tokenName(r.Token))
	l.pair("ticket", ticketName(r.Ticket))
	l.length("lease", r.Lease)
	l.length("waited", r.Waited)
	l.number("position", uint64(r.Position))
	l.number("slots", uint64(r.Slots))
	l.number("waiters", uint64(r.Waiters))
	if r.Held {
		l.words = append(l.words, "taken")
	}
	l.reason(r.Reason)
	fmt.Fprintln(&s.out, l)
}

// issued gives a token its name. One that is not above all before it is said
// to be so.
func (s *scene) issued(t Token) {
	if n := len(s.tokens); n > 0 && t <= s.tokens[n-1] && !s.merging {
		fmt.Fprintf(&s.out, "TOKEN WENT BACK from %d to %d\n", s.tokens[n-1], t)
	}
	s.tokens = append(s.tokens, t)
}

func (s *scene) tokenName(t Token) string {
	switch {
	case t == 0:
		return ""
	case s.rawToken:
		return fmt.Sprint(t)
	}
	for i, known := range s.tokens {
		if known == t {
			return fmt.Sprintf("t%d", i+1)
		}
	}
	return fmt.Sprintf("t%d", t-1<<50)
}

func (s *scene) sessionName(id Session) string {
	for name, known := range s.sessions {
		if known == id && !s.gone[name] {
			return name
		}
	}
	return "-"
}

func (s *scene) view(key []byte) {
	v := s.table.View(s.now, key, 100, 100)
	l := line{words: []string{v.Mode.String()}}
	l.key(key)
	if v.Slots > 1 {
		l.number("slots", uint64(v.Slots))
	}
	fmt.Fprintln(&s.out, l)
	for _, h := range v.Holders {
		l := line{words: []string{"holder"}}
		l.pair("token", s.tokenName(h.Token))
		l.pair("owner", h.Origin.Owner)
		l.pair("session", s.sessionName(h.Session))
		l.pair("ticket", ticketName(h.Ticket))
		l.length("lease", h.Lease)
		l.length("held-for", s.now.Sub(h.Since))
		fmt.Fprintln(&s.out, l)
	}
	for _, w := range v.Waiters {
		l := line{words: []string{"waiter", fmt.Sprint(w.Position)}}
		l.pair("owner", w.Origin.Owner)
		l.pair("session", s.sessionName(w.Session))
		l.pair("ticket", ticketName(w.Ticket))
		l.length("wait", w.Wait)
		l.length("waited", s.now.Sub(w.Since))
		if w.Shared {
			l.words = append(l.words, "shared")
		}
		fmt.Fprintln(&s.out, l)
	}
}

func (s *scene) nextLine() string {
	switch next := s.table.Next(); {
	case next == Never:
		return "next: never"
	case next <= s.now:
		return "next: now"
	default:
		return fmt.Sprintf("next: in %v", next.Sub(s.now))
	}
}

func ticketName(t Ticket) string { return strings.TrimRight(string(t[:]), "\x00") }

// line is one line of output. What is zero is left out.
type line struct{ words []string }

func (l line) String() string { return strings.Join(l.words, " ") }

func (l *line) pair(name, value string) {
	if value != "" {
		l.words = append(l.words, name+"="+value)
	}
}

func (l *line) number(name string, n uint64) {
	if n != 0 {
		l.pair(name, fmt.Sprint(n))
	}
}

func (l *line) length(name string, d time.Duration) {
	if d != 0 {
		l.pair(name, d.String())
	}
}

func (l *line) key(key []byte) {
	if len(key) > 40 {
		l.words = append(l.words, fmt.Sprintf("%s*%d", key[:1], len(key)))
	} else if len(key) > 0 {
		l.words = append(l.words, string(key))
	}
}

func (l *line) reason(r Reason) {
	if r != 0 {
		l.words = append(l.words, r.String())
	}
}

func (l *line) flags(f Flags) {
	for _, name := range []string{"shared", "bound", "contended"} {
		if f&flagNames[name] != 0 {
			l.words = append(l.words, name)
		}
	}
}
