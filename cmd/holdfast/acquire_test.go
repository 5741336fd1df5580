package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/cmd/holdfast/internal/fakeserver"
	"holdfast/wire"
)

func TestAcquireFormats(t *testing.T) {
	s := startServer(t)
	const key = `it's $HOME "quoted"`
	token := s.must("acquire", key, "--lease", "1m")
	if _, err := parseToken(token); err != nil {
		t.Errorf("text: %v", err)
	}
	s.must("release", key, token)

	var granted struct {
		Status, Key string
		Token       uint64
		Lease       float64
	}
	if err := json.Unmarshal([]byte(s.must("acquire", key, "--lease", "1m", "--format", "json")), &granted); err != nil {
		t.Fatal(err)
	}
	if granted.Status != "granted" || granted.Key != key || granted.Token == 0 || granted.Lease > 60 || granted.Lease < 30 {
		t.Errorf("json: %+v", granted)
	}
	s.must("release", key, fmt.Sprint(granted.Token))

	// What env prints is for a shell to judge.
	env := s.must("acquire", key, "--format", "env")
	out, err := exec.Command("/bin/sh", "-c", env+"\n"+`printf '%s|%s' "$HOLDFAST_KEY" "$HOLDFAST_FENCING_TOKEN"`).Output()
	if err != nil {
		t.Fatal(err)
	}
	gotKey, gotToken, _ := strings.Cut(string(out), "|")
	if gotKey != key {
		t.Errorf("env: key %q", gotKey)
	}
	env = s.must("release", gotKey, gotToken, "--format", "env")
	if want := "unset HOLDFAST_KEY HOLDFAST_FENCING_TOKEN"; env != want {
		t.Errorf("release --format env printed %q", env)
	}
}

func TestAcquireNotGranted(t *testing.T) {
	s := startServer(t)
	s.hold("job")
	for _, args := range [][]string{{"--try"}, {"--wait", "0"}, {"--wait", "20ms"}} {
		o := s.command(append([]string{"acquire", "job"}, args...)...)
		if o.code != exitNotAcquired || o.stdout != "" || !strings.HasPrefix(o.stderr, `holdfast: "job" `) {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

func TestAcquireRefused(t *testing.T) {
	s := startServer(t, "HOLDFAST_MAX_LEASE=1h")
	s.hold("exclusive")
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"job", "--lease", "2h"}, "lease"},
		{[]string{"exclusive", "--slots", "2"}, "All who use a key at one time must agree on --slots and --shared."},
		{[]string{""}, "key: 0 bytes; 1 to 1024"},
		{[]string{"a\nb"}, "control character"},
		{[]string{strings.Repeat("x", 1025)}, "key: 1025 bytes; 1 to 1024"},
		{[]string{"job", "--lease", "1us"}, "--lease: 1µs; 0, or 1ms to 1193h2m47.295s"},
		{[]string{"job", "--wait", "-1s"}, "--wait: -1s; 0, or 1ms"},
		{[]string{"job", "--wait", "1s", "--try"}, "--try and --wait: give one of them"},
		{[]string{"job", "--shared", "--slots", "2"}, "--shared and --slots: give one of them"},
		{[]string{"job", "--slots", "0"}, "--slots: 0; 1 to 65535"},
		{[]string{"job", "--ticket", "123"}, `--ticket "123": a random UUID or 32 hexadecimal digits`},
		{[]string{"job", "--format", "xml"}, "one of text, json, env"},
		{[]string{"job", "--owner", strings.Repeat("x", 256)}, "owner"},
		{[]string{}, "KEY is missing\nSee 'holdfast acquire --help'"},
		{[]string{"job", "job2"}, `unexpected argument "job2"`},
	} {
		o := s.command(append([]string{"acquire"}, c.args...)...)
		if o.code != exitFailure || o.stdout != "" || !strings.Contains(o.stderr, c.stderr) {
			t.Errorf("%.80q: %+v; want %q", c.args, o, c.stderr)
		}
	}
}

func TestAcquireTicketIsSafeToRepeat(t *testing.T) {
	s := startServer(t)
	first := s.must("acquire", "job", "--ticket", "6f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")
	again := s.must("acquire", "job", "--try", "--ticket", "6F1E2D3C4B5A69788796A5B4C3D2E1F0")
	if first != again {
		t.Errorf("tokens %s and %s; want the same", first, again)
	}
	s.must("release", "job", first)
}

// A token that nobody received can't be used to release.
func TestAcquireReleasesWhatItCannotPrint(t *testing.T) {
	s := startServer(t)
	var stderr strings.Builder
	code := run(t.Context(), []string{"acquire", "job"}, s.env(), failingWriter{}, &stderr)
	if code != exitFailure || !strings.Contains(stderr.String(), "the lock was released") {
		t.Errorf("exit code %d, %q", code, &stderr)
	}
	s.wantFree("job")
}

func TestAcquireSignalWhileWaiting(t *testing.T) {
	s := startServer(t)
	h := s.hold("job")
	p := s.start("", "acquire", "job")
	h.awaitWaiter()
	p.signal(unix.SIGINT)
	if o := p.wantExit(130); o.stdout != "" || !strings.Contains(o.stderr, "withdrawn") {
		t.Errorf("%+v", o)
	}
	h.release()
	s.wantFree("job")
}

// The server is told who asks.
func TestAcquireOwner(t *testing.T) {
	for want, args := range map[string][]string{
		"^release train 7$": {"acquire", "job", "--owner", "release train 7"},
		"^.+/.+:[0-9]+$":    {"extend", "job", "1"},
	} {
		owners := make(chan string, 16)
		server := fakeserver.NewServer()
		server.Intercept = func(_ *fakeserver.Conn, r *wire.Request) bool {
			if r.Op == wire.OpHello {
				owners <- string(r.Owner)
			}
			return false
		}
		command(t.Context(), nil, append(args, "--addr", server.Start(t))...)
		if got := <-owners; !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%v: owner %q", args, got)
		}
	}
}

func TestReleaseAndExtend(t *testing.T) {
	s := startServer(t)
	token := s.must("acquire", "job", "--lease", "1m")
	if got := s.must("extend", "job", token, "--lease", "90s"); got != "1m30s" {
		t.Errorf("extend printed %q", got)
	}
	if got := s.must("extend", "job", token); got != "30s" {
		t.Errorf("extend by the default printed %q", got)
	}
	if got, want := s.must("extend", "job", token, "--lease", "1m", "--format", "json"), "{\n  \"key\": \"job\",\n  \"lease\": 60,\n  \"status\": \"extended\"\n}"; got != want {
		t.Errorf("extend printed %s; want %s", got, want)
	}
	if got, want := s.must("extend", "job", token, "--format", "env"), "HOLDFAST_KEY='job'\nHOLDFAST_FENCING_TOKEN='"+token+"'"; got != want {
		t.Errorf("extend printed %s; want %s", got, want)
	}
	for _, args := range [][]string{{"release", "job", "1"}, {"extend", "job", "1"}, {"release", "other", token}} {
		if o := s.command(args...); o.code != exitLost || o.stdout != "" || !strings.Contains(o.stderr, "does not hold") {
			t.Errorf("%v: %+v", args, o)
		}
	}
	s.wantHeld("job")
	if got := s.must("release", "job", token); got != "" {
		t.Errorf("release printed %q", got)
	}
	if o := s.command("release", "job", token); o.code != exitLost {
		t.Errorf("a second release: %+v", o)
	}
	for _, args := range [][]string{
		{"release", "job"}, {"release", "job", "0"}, {"release", "job", "-1"}, {"release", "job", "1.5"},
		{"release", "job", "18446744073709551616"}, {"extend", "", "1"}, {"extend", "job", "1", "--lease", "-5s"},
		{"extend", "job", "1", "--lease", "48h"},
	} {
		if o := s.command(args...); o.code != exitFailure || o.stderr == "" {
			t.Errorf("%v: %+v", args, o)
		}
	}
}

func TestReleaseJSON(t *testing.T) {
	s := startServer(t)
	got := s.must("release", "job", s.must("acquire", "job"), "--format", "json")
	if want := "{\n  \"key\": \"job\",\n  \"status\": \"released\"\n}"; got != want {
		t.Errorf("release printed %s; want %s", got, want)
	}
}

// The auth token comes from a file or the environment, never from a flag.
func TestAuthToken(t *testing.T) {
	const secret = "open-sesame-0123456789"
	s := startServer(t, "HOLDFAST_AUTH_TOKEN="+secret)
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad, empty := write("good", secret+"\n"), write("bad", "something-else-entirely"), write("empty", "\n")
	for name, c := range map[string]struct {
		env, args []string
		code      int
		stderr    string
	}{
		"none":                  {nil, nil, exitFailure, adviceAuth},
		"variable":              {[]string{"HOLDFAST_AUTH_TOKEN=" + secret}, nil, 0, ""},
		"file by variable":      {[]string{"HOLDFAST_AUTH_TOKEN_FILE=" + good}, nil, 0, ""},
		"file by flag":          {nil, []string{"--auth-token-file", good}, 0, ""},
		"flag before variables": {[]string{"HOLDFAST_AUTH_TOKEN=wrong", "HOLDFAST_AUTH_TOKEN_FILE=" + bad}, []string{"--auth-token-file", good}, 0, ""},
		"wrong":                 {nil, []string{"--auth-token-file", bad}, exitFailure, adviceAuth},
		"both variables":        {[]string{"HOLDFAST_AUTH_TOKEN=" + secret, "HOLDFAST_AUTH_TOKEN_FILE=" + good}, nil, exitFailure, "HOLDFAST_AUTH_TOKEN and HOLDFAST_AUTH_TOKEN_FILE are both set: unset one"},
		"missing file":          {nil, []string{"--auth-token-file", filepath.Join(dir, "none")}, exitFailure, "no such file"},
		"empty file":            {nil, []string{"--auth-token-file", empty}, exitFailure, "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{{"acquire", "job", "--lease", "1s", "--wait", "10s"}, {"ping", "-c", "1"}, {"extend", "job", "1"}} {
				o := command(t.Context(), append(s.env(), c.env...), append(args, c.args...)...)
				code := c.code
				switch {
				case code == 0 && args[0] == "extend":
					code = exitLost // it got through; the token is not one
				case args[0] == "ping" && c.stderr == adviceAuth:
					code = exitUnreachable
				}
				if o.code != code || !strings.Contains(o.stderr, c.stderr) {
					t.Errorf("%s: %+v; want exit code %d and %q", args[0], o, code, c.stderr)
				}
				if strings.Contains(o.stderr+o.stdout, secret) || strings.Contains(o.stderr, "something-else") {
					t.Errorf("%s prints a secret: %+v", args[0], o)
				}
			}
		})
	}
}
