package ui_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/internal/web"
	"holdfast/internal/web/ui"
)

// hostile are keys that clients may choose, and that must be shown as text.
var hostile = []string{
	`<script>document.title="broken"</script>`,
	`"><img src=x onerror=document.title='broken'>`,
	`javascript:document.title='broken'`,
	`../../etc/passwd?a=b&c=d#e%2f`,
	"right\u202eto left",
	"zero\u200bwidth and nbsp\u00a0",
	"{{.}} ${x} {x} `x`",
	"ключ/钥匙/🔑",
	" blanks  at both ends ",
}

// stage is a node with something on it, its HTTP port, and the sessions that
// hold and wait.
type stage struct {
	node   *node.Node
	url    string
	tokens map[string]locks.Token
	first  *node.Session
	second *node.Session
	deaf   bool // no WebSocket gets through; set before a page is opened

	mu    sync.Mutex // guards what follows
	away  bool
	gone  context.Context // ends what is open when the node goes
	leave context.CancelFunc
}

// cut makes the node unreachable for browsers, or reachable again.
func (s *stage) cut(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
	if away && s.leave != nil {
		s.leave()
		s.gone = nil
	}
}

// cuttable answers 503 while the node is away, and ends what is open when it goes.
func (s *stage) cuttable(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if s.gone == nil {
			s.gone, s.leave = context.WithCancel(context.Background())
		}
		away, gone := s.away, s.gone
		s.mu.Unlock()
		if away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(gone, cancel)()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// sink keeps the tokens of grants; the test reads them between two batches.
type sink struct{ tokens map[string]locks.Token }

func (s sink) Flush() {}

func (s sink) Push(r *locks.Reply) {
	if s.tokens != nil && r.Code == locks.Granted {
		s.tokens[string(r.Key)] = r.Token
	}
}

// newStage starts a node. change may alter what its dashboard shows.
func newStage(t testing.TB, change func(*web.Config)) *stage {
	t.Helper()
	tc := locks.DefaultConfig()
	n, err := node.New(node.Config{
		Name: "n1", Version: "v0.2.0", Native: "10.0.0.1:7620", HTTP: []string{"http://10.0.0.1:7621"}, Table: tc,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { n.Run(ctx); close(ended) }()
	cfg := web.Config{Node: n, UI: ui.Config{Mode: ui.Full, Limits: tc, MaxConnections: 50_000, Settings: settings}}
	if change != nil {
		change(&cfg)
	}
	server, err := web.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{node: n, tokens: map[string]locks.Token{}}
	port := httptest.NewServer(s.cuttable(s.withoutSocket(server.Handler())))
	s.url = port.URL
	t.Cleanup(func() { port.Close(); cancel(); <-ended })
	s.first = n.Open(locks.Origin{Owner: "build-7.example/412", Remote: "10.0.3.17:50122", Transport: "native", Identity: ""}, sink{s.tokens})
	s.second = n.Open(locks.Origin{Owner: "cron@db-2", Remote: "10.0.3.40:41200", Transport: "http"}, sink{})
	return s
}

var settings = []ui.Setting{
	{Name: "HOLDFAST_NATIVE_ADDR", Value: "10.0.0.1:7620", Source: "environment"},
	{Name: "HOLDFAST_MAX_KEYS", Value: "10000000", Source: "default"},
	{Name: "HOLDFAST_AUTH_TOKEN", Value: "********", Source: "file /run/secrets/holdfast"},
}

// hold takes a key.
func (s *stage) hold(key string, lease time.Duration) {
	s.first.Do([]locks.Command{{Op: locks.OpAcquire, Key: []byte(key), Lease: lease}})
}

// wait puts n waiters into a key's queue.
func (s *stage) wait(key string, n int, wait time.Duration) {
	for i := range n {
		c := locks.Command{Op: locks.OpAcquire, Key: []byte(key), Lease: time.Minute, Wait: wait, Ref: uint64(i), Flags: locks.Retry}
		copy(c.Ticket[:], fmt.Sprintf("%016d", i+1))
		c.Origin = &locks.Origin{Owner: fmt.Sprintf("worker-%d", i+1), Remote: fmt.Sprintf("10.0.4.%d:40000", i+1), Transport: "native"}
		s.second.Do([]locks.Command{c})
	}
}

// furnish puts on the node what a busy one has.
func (s *stage) furnish() {
	for i := range 70 {
		s.hold(fmt.Sprintf("deploy/service-%02d", i), time.Duration(i+1)*time.Minute)
	}
	for _, key := range hostile {
		s.hold(key, 20*time.Minute)
	}
	s.hold("nightly/report", 30*time.Second)
	s.wait("nightly/report", 12, 5*time.Minute)
	s.wait("deploy/service-03", 3, 0)
	for range 3 {
		s.first.Do([]locks.Command{{Op: locks.OpAcquire, Key: []byte("gpu/pool"), Slots: 4, Lease: 10 * time.Minute}})
	}
}

// withoutSocket hides /v1/ws while the stage is deaf, as a proxy does that knows no WebSockets.
func (s *stage) withoutSocket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/ws" && s.deaf {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// samples are ten minutes of a busy node, with a change of role in them.
func samples() []node.Sample {
	all := make([]node.Sample, 600)
	begin := time.Now().Add(-10 * time.Minute)
	for i := range all {
		x := float64(i)
		s := &all[i]
		s.At, s.Role = begin.Add(time.Duration(i)*time.Second), node.Active
		s.Grants = uint32(1200 + 300*math.Sin(x/40) + 80*math.Sin(x*1.7))
		s.Releases = uint32(1150 + 300*math.Sin((x-8)/40) + 80*math.Sin(x*2.3))
		s.Held, s.Waiting = int(420+60*math.Sin(x/70)), int(90+80*math.Sin(x/25)*math.Sin(x/25))
		s.WaitP50 = time.Duration((3 + math.Sin(x/9)) * float64(time.Millisecond))
		s.WaitP99 = time.Duration((28 + 14*math.Sin(x/30) + 3*math.Sin(x)) * float64(time.Millisecond))
		s.Lag = time.Duration((1 + math.Abs(math.Sin(x/3))) * float64(time.Millisecond))
		if i < 150 {
			*s = node.Sample{At: s.At, Role: node.Standby, Held: s.Held, Waiting: s.Waiting}
		}
	}
	return all
}

// members are a cluster of three, one of which is silent.
func members() []node.Member {
	now := time.Now()
	return []node.Member{
		{Rank: 0, Name: "n1", Self: true, Alive: true, Role: node.Active, Version: "v0.2.0", Native: "10.0.0.1:7620", HTTP: []string{"http://10.0.0.1:7621"},
			Epoch: 231472837469184, Seq: 48122, Synced: true, Since: now.Add(-7*time.Minute - 30*time.Second), Reason: "took the service back"},
		{Rank: 1, Name: "n2", Alive: true, Role: node.Standby, Version: "v0.2.0", Native: "10.0.0.2:7620", HTTP: []string{"http://10.0.0.2:7621"},
			Epoch: 231472837469184, Seq: 48120, Synced: true, Behind: 2, Lag: 1300 * time.Microsecond},
		{Rank: 2, Name: "n3", Role: node.Standby, Version: "v0.1.9", Native: "10.0.0.3:7620", HTTP: []string{"http://10.0.0.3:7621"},
			Epoch: 231472837469184, Seq: 31007},
	}
}

// events are one of each weight, and what operators do.
func events(f ui.EventFilter, most int) []ui.Event {
	now := time.Now()
	all := []ui.Event{
		{Seq: 91, At: now.Add(-8 * time.Second), Kind: "expired", Weight: ui.Warning, Key: "deploy/service-31", Owner: "build-7.example/412", Token: 3703565396, Text: "the lease ran out"},
		{Seq: 90, At: now.Add(-40 * time.Second), Kind: "operator", Weight: ui.Warning, Key: hostile[0], Owner: "cron@db-2", Token: 3703565388, Text: "forced release",
			Who: "olga", From: "10.0.9.4:61022", Why: "holder crashed, see incident 4711", Result: "done"},
		{Seq: 88, At: now.Add(-3 * time.Minute), Kind: "timeout", Key: "nightly/report", Owner: "worker-5", Text: "stopped waiting after 5 min", Gap: 1},
		{Seq: 87, At: now.Add(-7 * time.Minute), Kind: "role", Weight: ui.Warning, Text: "standby became active: took the service back"},
		{Seq: 80, At: now.Add(-12 * time.Minute), Kind: "peer", Weight: ui.Alarm, Text: "n3 is not heard any more"},
	}
	var fit []ui.Event
	for _, e := range all {
		if (f.Kind == "" || f.Kind == e.Kind) && (f.Key == "" || f.Key == e.Key) && len(fit) < most {
			fit = append(fit, e)
		}
	}
	return fit
}

// busy is a dashboard with all that it can show.
func busy(c *web.Config) {
	c.UI.History, c.UI.Members, c.UI.Events, c.UI.Replication = samples, members, events, "async"
}

func tokenOf(s *stage, key string) string { return strconv.FormatUint(uint64(s.tokens[key]), 10) }

func activeElsewhere(*http.Request) string { return "http://10.0.0.2:7621" }
