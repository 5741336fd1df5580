package replica

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios say into testdata")

// TestScenarios runs testdata/*.txt: blocks of commands, a line of dashes, and
// what happens. The commands are explained in (*script).do.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runScript(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("%s: run with -rewrite and review the difference; got\n%s", file, got)
			}
		})
	}
}

type script struct {
	t    *testing.T
	w    *world
	out  strings.Builder
	ids  uint64
	held map[string]Token
	real map[Epoch]string
}

// runScript returns the script with what it gives.
func runScript(t *testing.T, text string) string {
	s := &script{t: t, held: map[string]Token{}, real: map[Epoch]string{}}
	var out strings.Builder
	for i, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		commands, _, _ := strings.Cut(block+"\n", "\n----\n")
		commands = strings.TrimRight(commands, "\n")
		s.out.Reset()
		run := false
		for _, line := range strings.Split(commands, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") {
				run = true
				s.do(strings.Fields(line))
			}
		}
		if i > 0 {
			out.WriteString("\n")
		}
		out.WriteString(commands + "\n")
		if run {
			out.WriteString("----\n" + s.out.String())
		}
	}
	return out.String()
}

// do runs one command:
//
//	cluster 3 [ack] [nopreempt] [delay=1s] [log=1024]   make it; nothing runs yet
//	start a b c | crash a | pause a | resume a | stop a
//	run 500ms                                           let time pass
//	cut a b | cut a>b | heal                            paths, both ways or one
//	snap a b                                            close the links, with what is in flight
//	slow a>b 50ms                                       that much later
//	acquire a key ticket | release a key ticket         ask a node
//	handoff a [b]                                       as an operator
//	corrupt a                                           change a node's state behind its back
//	events a 20                                         make that many events
//	clock a 2h                                          set a node's wall clock off, before its start
//	names a n0 n2 n1                                    give a node its own peers list, before its start
//	status                                              of every node
func (s *script) do(f []string) {
	if f[0] == "cluster" {
		s.cluster(f[1:])
		return
	}
	switch f[0] {
	case "start", "crash", "pause", "resume", "stop":
		for _, name := range f[1:] {
			s.process(f[0], s.node(name))
		}
	case "run":
		s.w.run(s.span(f[1]))
	case "cut":
		s.cut(strings.Join(f[1:], " "))
	case "heal":
		s.w.healAll()
	case "snap":
		for l := s.node(f[1]).wireTo(s.node(f[2])); l != nil; l = s.node(f[1]).wireTo(s.node(f[2])) {
			l.snap()
		}
	case "slow":
		from, to, _ := strings.Cut(f[1], ">")
		s.w.slow[[2]int{s.node(from).rank, s.node(to).rank}] = s.span(f[2])
	case "acquire", "release":
		s.request(f)
	case "handoff":
		to := Nobody
		if len(f) > 2 {
			to = Rank(s.node(f[2]).rank)
		}
		s.node(f[1]).feed(HandoffRequested{To: to})
	case "corrupt":
		s.node(f[1]).state.fold("grant k5 999 nobody")
		s.w.check = nil
	case "events":
		count, _ := strconv.Atoi(f[2])
		for range count {
			s.node(f[1]).commit("ended 5")
		}
	case "clock":
		s.w.clocks[s.node(f[1]).rank] = s.span(f[2])
	case "names":
		s.node(f[1]).names = f[2:]
	case "status":
		s.status()
	default:
		s.t.Fatalf("unknown command %q", f)
	}
}

func (s *script) cluster(f []string) {
	n, _ := strconv.Atoi(f[0])
	cfg := DefaultConfig()
	cfg.LogBytes = 1 << 16
	for _, o := range f[1:] {
		k, v, _ := strings.Cut(o, "=")
		switch k {
		case "ack":
			cfg.Ack = true
		case "nopreempt":
			cfg.Preempt = false
		case "delay":
			cfg.TakeBackDelay = s.span(v)
		case "log":
			cfg.LogBytes, _ = strconv.Atoi(v)
		default:
			s.t.Fatalf("unknown option %q", o)
		}
	}
	s.w = newWorld(1, n, cfg)
	s.w.log = func(format string, args ...any) {
		ms := fmt.Sprintf("%.3fs ", s.w.now.Seconds())
		fmt.Fprintln(&s.out, strings.TrimRight(ms+s.w.text(fmt.Sprintf(format, args...)), " "))
	}
	c := newChecker(s.w)
	s.t.Cleanup(func() {
		if c.fault != "" {
			s.t.Error(c.fault)
		}
	})
}

func (s *script) node(name string) *node {
	i := int(name[0] - 'a')
	if len(name) != 1 || i < 0 || i >= len(s.w.nodes) {
		s.t.Fatalf("unknown node %q", name)
	}
	return s.w.nodes[i]
}

func (s *script) span(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *script) process(verb string, n *node) {
	switch verb {
	case "start":
		n.start()
	case "crash":
		n.crash()
	case "pause":
		n.pause()
	case "resume":
		n.resume()
	case "stop":
		n.feed(StopRequested{})
	}
}

func (s *script) cut(what string) {
	if from, to, ok := strings.Cut(what, ">"); ok {
		s.w.setCut(s.node(from).rank, s.node(to).rank, true)
		return
	}
	f := strings.Fields(what)
	for _, a := range f {
		for _, b := range f {
			if a != b {
				s.w.setCut(s.node(a).rank, s.node(b).rank, true)
			}
		}
	}
}

func (s *script) request(f []string) {
	s.ids++
	verb, who, key, ticket := f[0], f[1], f[2], f[3]
	r := request{id: s.ids, op: verb, key: key, ticket: ticket, token: s.held[key+ticket]}
	r.reply = func(a answer) {
		to := ""
		switch a.code {
		case "granted":
			if s.held[key+ticket] == a.token {
				to = "the same token"
			}
			s.held[key+ticket] = a.token
		case "moved":
			if to = "to nobody"; a.to != Nobody {
				to = fmt.Sprintf("to n%d", a.to)
			}
		}
		s.w.log("%s %s: %s %s", key, ticket, a.code, to)
	}
	s.node(who).request(r)
}

func (s *script) status() {
	for _, n := range s.w.nodes {
		if !n.up {
			fmt.Fprintf(&s.out, "n%d down\n", n.rank)
			continue
		}
		st := n.m.Status()
		fmt.Fprintf(&s.out, "n%d %s", n.rank, st.Role)
		if st.Role != Active {
			of := "nobody"
			if st.Active != Nobody {
				of = fmt.Sprintf("n%d", st.Active)
			}
			fmt.Fprintf(&s.out, " of %s synced=%v", of, st.Synced)
		}
		if st.TakeBacksOff {
			fmt.Fprint(&s.out, " take-back is off")
		}
		fmt.Fprintf(&s.out, " at %s", s.w.place(st.Position))
		for _, k := range n.state.keys() {
			fmt.Fprintf(&s.out, " %s:%s", k, n.state.held[k].ticket)
			for _, x := range n.state.queue[k] {
				fmt.Fprintf(&s.out, "<%s", x)
			}
		}
		if len(n.state.ended) > 0 {
			fmt.Fprintf(&s.out, " ended=%d", len(n.state.ended))
		}
		fmt.Fprintln(&s.out)
	}
}

// place names an epoch by a letter, so that golden output does not hang on token numbers.
func (w *world) place(p Position) string {
	if p.IsZero() {
		return "nothing"
	}
	i := slices.Index(w.epochs, p.Epoch)
	if i < 0 {
		i = len(w.epochs)
		w.epochs = append(w.epochs, p.Epoch)
	}
	return fmt.Sprintf("E%d/%d", i+1, p.Seq)
}

var positions = regexp.MustCompile(`(\d{10,})/(\d+)`)

func (w *world) text(s string) string {
	return positions.ReplaceAllStringFunc(s, func(p string) string {
		var pos Position
		fmt.Sscanf(p, "%d/%d", &pos.Epoch, &pos.Seq)
		return w.place(pos)
	})
}
