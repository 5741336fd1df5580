package native

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/node"
	"holdfast/wire"
)

// A script is blocks of commands, "----" and what the clients read afterwards,
// each ended by an empty line. The first line of a command is its name and the
// client's; see the cases of world.do. Tokens are called t1, t2, ... in the
// order in which they appear.
//
// The scripts run in a bubble, over pipes. Those that say "also over TCP" run
// over real sockets too, and must read the same.

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			inBubble(t, func(t *testing.T) { runScript(t, file, string(text), inMemory) })
			if !*rewrite && strings.Contains(string(text), "also over TCP") {
				t.Run("tcp", func(t *testing.T) { runScript(t, file, string(text), loopback) })
			}
		})
	}
}

func runScript(t *testing.T, file, text string, on network) {
	w := &world{
		fixture: start(t, on, scriptConfig),
		clients: map[string]*client{}, tokens: map[uint64]string{}, shown: map[string]bool{},
	}
	var got strings.Builder
	blocks := strings.Split(strings.TrimSpace(text), "\n\n")
	for _, block := range blocks {
		commands, _, found := strings.Cut(block+"\n", "----\n")
		if !found { // a comment of its own
			got.WriteString(block + "\n\n")
			continue
		}
		got.WriteString(commands + "----\n")
		for line := range strings.Lines(commands) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				w.settle(w.do(line))
			}
		}
		got.WriteString(w.read() + "\n")
	}
	result := strings.TrimSpace(got.String()) + "\n"
	if *rewrite && on == inMemory {
		if err := os.WriteFile(file, []byte(result), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if result != text {
		t.Errorf("%s:\n%s", file, firstDifference(result, text))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d:\n got: %s\nwant: %s\n\nall of it:\n%s", i+1, g[i], strings.Join(w[min(i, len(w)):min(i+1, len(w))], ""), got)
		}
	}
	return "got less than wanted:\n" + got
}

func scriptConfig(n *node.Config, c *Config) {
	n.Table.MaxPending = 3
	n.Table.MaxKeys = 20
	n.Table.MaxWaitersPerKey = 6
	c.MaxPending = 3
	c.HTTPHint = "http://127.0.0.1:7621"
	c.Authenticate = func(auth []byte) (string, bool) {
		return string(auth), string(auth) != "wrong"
	}
}

type world struct {
	*fixture
	clients map[string]*client
	tokens  map[uint64]string
	shown   map[string]bool // clients whose end was shown
}

// args are the words of a command: positional ones, and name=value.
type args struct {
	t     testing.TB
	words []string
	named map[string]string
}

func parse(t testing.TB, line string) args {
	a := args{t: t, named: map[string]string{}}
	for _, w := range strings.Fields(line) {
		if name, value, ok := strings.Cut(w, "="); ok {
			if s, err := strconv.Unquote(`"` + strings.Trim(value, `"`) + `"`); err == nil {
				value = s
			}
			a.named[name] = value
		} else {
			a.words = append(a.words, w)
		}
	}
	return a
}

func (a args) number(name string) uint64 {
	v, ok := a.named[name]
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(v, 0, 64)
	if err != nil {
		a.t.Fatalf("%s=%s: %v", name, v, err)
	}
	return n
}

func (a args) millis(name string) uint32 {
	v, ok := a.named[name]
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		a.t.Fatalf("%s=%s: %v", name, v, err)
	}
	return uint32(d.Milliseconds())
}

func (w *world) token(name string) uint64 {
	for token, n := range w.tokens {
		if n == name {
			return token
		}
	}
	n, err := strconv.ParseUint(name, 0, 64)
	if err != nil {
		w.t.Fatalf("no token %q", name)
	}
	return n
}

// settle waits until everything that client c has sent was dealt with.
func (w *world) settle(c *client) {
	if w.bubble {
		synctest.Wait()
	} else if c != nil {
		c.sync()
	}
}

// do runs a command and returns its client, if it is one that speaks.
func (w *world) do(line string) *client {
	a := parse(w.t, line)
	verb := a.words[0]
	switch verb {
	case "wait":
		d, err := time.ParseDuration(a.words[1])
		if err != nil || !w.bubble {
			w.t.Fatal("wait", err)
		}
		time.Sleep(d)
		return nil
	case "stop":
		go w.srv.Shutdown(w.t.Context())
		return nil
	}
	name := a.words[1]
	if verb == "open" {
		w.clients[name] = w.connect(name)
		return nil
	}
	c := w.clients[name]
	switch verb {
	case "close":
		c.close()
	case "bytes": // hex, or a quoted text
		c.sendBytes(bytesOf(w.t, line))
	case "frames": // several requests in one packet: frames a acquire ... ; release ...
		var b []byte
		for one := range strings.SplitSeq(strings.SplitN(line, " ", 3)[2], ";") {
			verb, rest, _ := strings.Cut(strings.TrimSpace(one), " ")
			r := w.request(parse(w.t, verb+" "+name+" "+rest))
			b = wire.AppendRequest(b, &r)
		}
		c.sendBytes(b)
	default:
		c.send(w.request(a))
	}
	return c
}

func bytesOf(t testing.TB, line string) []byte {
	_, rest, _ := strings.Cut(line, " ")
	_, rest, _ = strings.Cut(rest, " ")
	if s, err := strconv.Unquote(rest); err == nil {
		return []byte(s)
	}
	b, err := hex.DecodeString(strings.ReplaceAll(rest, " ", ""))
	if err != nil {
		t.Fatal(line, err)
	}
	return b
}

// request makes the frame of a command: verb, client, key if it has one.
func (w *world) request(a args) wire.Request {
	r := wire.Request{ID: uint32(a.number("id")), LeaseMS: a.millis("lease")}
	if len(a.words) > 2 {
		r.Key = []byte(a.words[2])
	}
	if s, ok := a.named["key"]; ok {
		r.Key = []byte(s)
	}
	switch a.words[0] {
	case "hello":
		r.Op, r.Version = wire.OpHello, wire.Version
		r.Owner, r.Auth = []byte(a.named["owner"]), []byte(a.named["auth"])
		if a.named["version"] != "" {
			r.Version = uint16(a.number("version"))
		}
	case "acquire":
		r.Op, r.WaitMS, r.Slots = wire.OpAcquire, a.millis("wait"), uint16(a.number("slots"))
		copy(r.Ticket[:], a.named["ticket"])
		for _, word := range a.words {
			r.Flags |= map[string]wire.Flags{
				"TRY": wire.FlagTry, "RETRY": wire.FlagRetry, "SHARED": wire.FlagShared,
				"BOUND": wire.FlagBound, "CONTENDED": wire.FlagContended,
			}[word]
		}
		if len(r.Key) > 0 && r.Key[0] >= 'A' && r.Key[0] <= 'Z' {
			r.Key = nil // no key: the word is a flag
		}
	case "release":
		r.Op, r.Token = wire.OpRelease, w.token(a.named["token"])
	case "extend":
		r.Op, r.Token = wire.OpExtend, w.token(a.named["token"])
	case "cancel":
		r.Op, r.Target = wire.OpCancel, uint32(a.number("target"))
	case "ping":
		r.Op = wire.OpPing
	default:
		w.t.Fatalf("no command %q", a.words[0])
	}
	if f := a.number("flags"); f != 0 {
		r.Flags = wire.Flags(f)
	}
	return r
}

// read shows what the clients read since the last time, by their names.
func (w *world) read() string {
	for _, c := range w.clients {
		w.settle(c)
	}
	var out strings.Builder
	for _, name := range w.names() {
		c := w.clients[name]
		for _, r := range c.take() {
			out.WriteString(name + ": " + w.show(&r) + "\n")
		}
		c.mu.Lock()
		if len(c.raw) > 0 {
			fmt.Fprintf(&out, "%s: bytes %q\n", name, c.raw)
			c.raw = nil
		}
		if c.closed && !w.shown[name] {
			w.shown[name] = true
			out.WriteString(name + ": closed\n")
		}
		c.mu.Unlock()
	}
	return out.String()
}

func (w *world) names() []string {
	var names []string
	for name := range w.clients {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// show prints a reply with its token's name. What is left of a lease is shown
// as it is in a bubble, where no time passes by itself.
func (w *world) show(r *wire.Reply) string {
	text := r.String()
	if r.Token != 0 {
		name := w.tokens[r.Token]
		if name == "" {
			name = fmt.Sprintf("t%d", len(w.tokens)+1)
			w.tokens[r.Token] = name
		}
		text = strings.Replace(text, fmt.Sprintf("token=%d", r.Token), "token="+name, 1)
	}
	if !w.bubble && r.LeaseMS != 0 {
		text = strings.Replace(text, fmt.Sprintf("lease=%dms", r.LeaseMS), fmt.Sprintf("lease=%dms", (r.LeaseMS+999)/1000*1000), 1)
	}
	return text
}
