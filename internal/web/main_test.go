package web

import (
	"context"
	"flag"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/locks"
	"holdfast/internal/node"
	"holdfast/internal/web/webtest"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts in testdata got as what they want")

var contract *webtest.Contract

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if contract, err = webtest.Load(OpenAPI); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// startOfTokens is when the token clock begins: in a bubble that starts then,
// tokens are small and the same in every run.
var startOfTokens = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// toTokenTime brings a bubble's clock, which starts in 2000, to where tokens are.
func toTokenTime() { time.Sleep(time.Until(startOfTokens)) }

// newServer makes a server with a node whose deadlines are served until the test ends.
func newServer(t testing.TB, cfg Config, table func(*locks.Config)) *Server {
	t.Helper()
	tc := locks.DefaultConfig()
	if table != nil {
		table(&tc)
	}
	n, err := node.New(node.Config{
		Name: "n1", Version: "v0.0.0-test", Native: "127.0.0.1:7620", HTTP: []string{"http://127.0.0.1:7621"}, Table: tc,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { n.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	cfg.Node = n
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// configFor reads the words of a script's config line.
func configFor(t testing.TB, words []string, log *slog.Logger) (Config, func(*locks.Config)) {
	cfg := Config{Log: log}
	table := func(*locks.Config) {}
	for _, w := range words {
		name, val, _ := strings.Cut(w, "=")
		switch name {
		case "auth":
			cfg.Authenticate = func(secret string) (Identity, bool) {
				id, ok := map[string]Identity{
					"s3cret-a": {Name: "alice"}, "s3cret-b": {Name: "bob"}, "s3cret-o": {Name: "olga", Operate: true},
				}[secret]
				return id, ok
			}
		case "hosts":
			cfg.Hosts = strings.Split(val, ",")
		case "allowed":
			cfg.AllowedHosts = strings.Split(val, ",")
		case "origins":
			cfg.TrustedOrigins = strings.Split(val, ",")
		case "proxies":
			for p := range strings.SplitSeq(val, ",") {
				cfg.TrustedProxies = append(cfg.TrustedProxies, netip.MustParsePrefix(p))
			}
		case "secret": // of the cluster
			cfg.Secrets = func() []string { return []string{val} }
		case "tiny": // the smallest table that limits can be seen on
			table = func(c *locks.Config) { c.MaxKeys, c.MaxWaiters, c.MaxKeyBytes = 2, 1, 40 }
		case "debug": // the script's own
		default:
			t.Fatalf("config: unknown word %q", w)
		}
	}
	return cfg, table
}
