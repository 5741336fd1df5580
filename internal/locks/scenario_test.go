package locks_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "holdfast/internal/locks"
)

var rewrite = flag.Bool("rewrite", false, "write the scenarios in testdata anew, with what the table answers")

// TestScenarios runs the scripts of testdata/*.txt: blocks of comments, steps,
// a line of dashes, and all that the table answers. testdata/README.md tells the
// steps. Every step is checked against the model too.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var s *scene
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		steps, want, _ := strings.Cut(block, "\n----")
		out.WriteString(steps)
		if s != nil {
			s.out.Reset()
		}
		for line := range strings.SplitSeq(steps, "\n") {
			switch {
			case line == "" || strings.HasPrefix(line, "#"):
				continue
			case strings.HasPrefix(line, "new"):
				s = newScene()
			}
			if err := s.step(strings.Fields(line)); err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
		}
		got := ""
		if s != nil && s.out.Len() > 0 {
			got = "\n----\n" + strings.TrimSuffix(s.out.String(), "\n")
		}
		out.WriteString(got + "\n\n")
		if want = strings.TrimSpace(want); !*rewrite && want != strings.TrimSpace(strings.TrimPrefix(got, "\n----\n")) {
			t.Errorf("%s:\n%s\nanswers\n%s\nnot\n%s", file, steps, strings.TrimPrefix(got, "\n----\n"), want)
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(strings.TrimSpace(out.String())+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// scene is one case of a script: a table, and names for what stands in it.
type scene struct {
	*harness
	out      strings.Builder
	cfg      Config
	sessions map[string]Session // the latest of each name
	gone     map[string]bool    // those that were detached
	numbered uint64
	tokens   []Token // t1, t2, ...
	there    []Event // what another node offers
	merging  bool
	rawToken bool
}

func newScene() *scene {
	return &scene{sessions: map[string]Session{}, gone: map[string]bool{}, cfg: Config{
		KeepEnded:    true,
		DefaultLease: 30 * time.Second, MaxLease: time.Hour, ReattachGrace: 5 * time.Second,
		MaxKeys: 1000, MaxKeyBytes: 1 << 20, MaxWaiters: 1000, MaxWaitersPerKey: 1000, MaxPending: 1000,
	}}
}

// step runs one line.
func (s *scene) step(words []string) error {
	a, err := readArgs(words[1:])
	if err != nil {
		return err
	}
	switch words[0] {
	case "new":
		return s.begin(a)
	case "do":
		return s.command(words[1], words[2], a)
	case "advance", "late":
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return err
		}
		s.now = s.now.Add(d)
		if words[0] == "advance" {
			return s.advance(int(a.number["max"]))
		}
	case "promote":
		for who := range s.sessions {
			s.gone[who] = true
		}
		return s.promote()
	case "activate":
		return s.activate()
	case "rouse":
		return s.rouse(int(a.number["max"]))
	case "step-down":
		return s.stepDown()
	case "there":
		return s.offer(words[1], a)
	case "merge":
		s.merging = true
		defer func() { s.merging, s.there = false, nil }()
		return s.merge(s.there)
	case "trim":
		return s.trim(a.number["keep"])
	case "ended":
		first, next := s.table.Ended()
		fmt.Fprintf(&s.out, "ended: places %d to %d\n", first, next)
	case "view":
		s.view(a.keyAt(0))
	case "stats":
		st := s.table.Stats()
		fmt.Fprintf(&s.out, "keys=%d held=%d waiters=%d key-bytes=%d\n", st.Keys, st.Held, st.Waiters, st.KeyBytes)
	case "next":
		fmt.Fprintln(&s.out, s.nextLine())
	default:
		return fmt.Errorf("unknown step")
	}
	return nil
}

func (s *scene) begin(a args) error {
	for name, field := range map[string]*int{"max-keys": &s.cfg.MaxKeys, "max-waiters": &s.cfg.MaxWaiters,
		"max-key-waiters": &s.cfg.MaxWaitersPerKey, "max-pending": &s.cfg.MaxPending} {
		if n, ok := a.number[name]; ok {
			*field = int(n)
		}
	}
	if n, ok := a.number["max-key-bytes"]; ok {
		s.cfg.MaxKeyBytes = int64(n)
	}
	s.cfg.Rank, s.cfg.ClockAtZero = uint8(a.number["rank"]), a.number["clock"]
	if d, ok := a.length["grace"]; ok {
		s.cfg.ReattachGrace = d
	}
	s.rawToken = a.flag["raw-tokens"]
	s.harness = newHarness(s.cfg, &coverage{})
	if s.rawToken {
		s.log = s.print
	}
	err := s.compare()
	s.log = s.print
	return err
}

// attach begins a session.
func (s *scene) attach(who, identity string) error {
	s.numbered++
	s.sessions[who] = Session(s.numbered<<32 | s.numbered)
	delete(s.gone, who)
	return s.do(Command{Op: OpAttach, Session: s.sessions[who],
		Origin: &Origin{Owner: who, Transport: "native", Identity: identity}})
}

// command runs "do CLIENT OP ...". A client that is not there is attached
// first, unless all it has to say is what it said when it went.
func (s *scene) command(who, op string, a args) error {
	if op == "attach" {
		return s.attach(who, a.word["identity"])
	}
	if s.sessions[who] == 0 || s.gone[who] && op != "undelivered" && op != "detach" {
		if err := s.attach(who, ""); err != nil {
			return err
		}
	}
	c := Command{Session: s.sessions[who], Ref: a.number["ref"], Key: a.keyAt(2), Slots: uint16(a.number["slots"]),
		Token: s.token(a.word["token"]), Lease: a.length["lease"], Wait: a.length["wait"], Ticket: ticketOf(a.word["ticket"])}
	if as, ok := a.word["as"]; ok {
		c.Origin = &Origin{Owner: who, Identity: as}
	}
	for name, flag := range flagNames {
		if a.flag[name] {
			c.Flags |= flag
		}
	}
	for c.Op = OpAttach; c.Op.String() != op; c.Op++ {
		if c.Op > OpRemoveWaiter {
			return fmt.Errorf("unknown command %q", op)
		}
	}
	if c.Op == OpDetach {
		c.Key = nil
		s.gone[who] = true
	}
	return s.do(c)
}

// offer adds to what another node has.
func (s *scene) offer(kind string, a args) error {
	e := Event{Key: a.keyAt(1), Token: s.token(a.word["token"]), Ticket: ticketOf(a.word["ticket"]), Lease: a.length["lease"],
		Wait: a.length["wait"], Slots: uint16(max(a.number["slots"], 1)), Origin: &Origin{Owner: "there"}}
	for name, flag := range flagNames {
		if a.flag[name] {
			e.Flags |= flag
		}
	}
	for e.Kind = EventEpoch; e.Kind.String() != kind; e.Kind++ {
		if e.Kind > EventEnded {
			return fmt.Errorf("unknown event %q", kind)
		}
	}
	s.there = append(s.there, e)
	return nil
}

var flagNames = map[string]Flags{"try": Try, "retry": Retry, "shared": Shared, "bound": Bound, "contended": Contended, "stay": Stay}

// token finds a token by its name: t1 is the first that was granted. One that
// was not granted yet is some other number.
func (s *scene) token(name string) Token {
	n, _ := strconv.Atoi(strings.TrimPrefix(name, "t"))
	switch {
	case name == "":
		return 0
	case s.rawToken:
		return Token(n)
	case n >= 1 && n <= len(s.tokens):
		return s.tokens[n-1]
	}
	return Token(1<<50 + n)
}

// ticketOf makes a ticket of a name.
func ticketOf(name string) (t Ticket) {
	copy(t[:], name)
	return t
}

// args are the words after a step's first: KEY and other plain words by place,
// name=value pairs, and flags.
type args struct {
	words  []string
	word   map[string]string
	number map[string]uint64
	length map[string]time.Duration
	flag   map[string]bool
}

func readArgs(words []string) (args, error) {
	a := args{words: words, word: map[string]string{}, number: map[string]uint64{},
		length: map[string]time.Duration{}, flag: map[string]bool{}}
	for _, w := range words {
		name, value, pair := strings.Cut(w, "=")
		if !pair {
			a.flag[w] = true
			continue
		}
		a.word[name] = value
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			a.number[name] = n
		}
		if d, err := time.ParseDuration(value); err == nil {
			a.length[name] = d
		} else if name == "lease" || name == "wait" || name == "grace" {
			return a, err
		}
	}
	return a, nil
}

// keyAt reads the key at a place: "" is the empty key, x*9 is nine times x.
func (a args) keyAt(i int) []byte {
	if i >= len(a.words) || strings.Contains(a.words[i], "=") {
		return nil
	}
	word, times, many := strings.Cut(a.words[i], "*")
	if n, err := strconv.Atoi(times); many && err == nil {
		return []byte(strings.Repeat(word, n))
	}
	if word == `""` {
		return []byte{}
	}
	return []byte(word)
}
