package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/wire"
)

// The worst fault there is would be a token that repeats or goes back: a killed node that is back within the same
// second goes on above all it ever gave, with a data directory and without.
func TestTokensRiseAcrossKills(t *testing.T) {
	t.Parallel()
	for name, vars := range map[string][]string{
		"without a data directory": nil,
		"with a data directory":    {"HOLDFAST_DATA_DIR=" + filepath.Join(t.TempDir(), "data")},
	} {
		t.Run(name, func(t *testing.T) {
			var highest uint64
			for life := range 6 {
				d := startProcess(t, vars...)
				c := dial(t, d.native, "")
				for i := range 50 {
					token := c.acquire(fmt.Sprint("key-", i))
					if token <= highest {
						t.Fatalf("life %d, grant %d: token %d is not above %d", life, i, token, highest)
					}
					highest = token
				}
				d.signal(t, syscall.SIGKILL)
				d.exitCode(t)
			}
		})
	}
}

func TestSecondProcessOnOneDataDir(t *testing.T) {
	t.Parallel()
	dir := "HOLDFAST_DATA_DIR=" + t.TempDir()
	first := startProcess(t, dir)
	second := launch(t, dir)
	if code := second.exitCode(t); code != exitFailed || !strings.Contains(second.text(), "in use by another process, number ") {
		t.Errorf("exit code %d, log:\n%s", code, second.text())
	}
	dial(t, first.native, "").acquire("job")
}

func TestSignalsStopInOrder(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		d := startProcess(t)
		c := dial(t, d.native, "")
		d.signal(t, sig)
		if r := c.read(); r.Op != wire.OpMoved || len(r.Addr) != 0 || !c.closed() {
			t.Errorf("%v: the client was told %+v, want M without an address, and a close", sig, r)
		}
		if code := d.exitCode(t); code != exitOK || !strings.Contains(d.text(), `"msg":"stopped"`) {
			t.Errorf("%v: exit code %d, log:\n%s", sig, code, d.text())
		}
	}
}

func TestSecondSignalExitsAtOnce(t *testing.T) {
	t.Parallel()
	d := startProcess(t, "HOLDFAST_DRAIN_DELAY=30m", "HOLDFAST_STOP_TIMEOUT=1h")
	d.signal(t, syscall.SIGTERM)
	d.await(t, "stopping")
	d.signal(t, syscall.SIGTERM)
	if code := d.exitCode(t); code != exitFailed || !strings.Contains(d.text(), errSecondSignal.Error()) {
		t.Errorf("exit code %d, log:\n%s", code, d.text())
	}
}

// A client that never finishes its request does not hold the exit up.
func TestStopTimeout(t *testing.T) {
	t.Parallel()
	d := startProcess(t, "HOLDFAST_STOP_TIMEOUT=500ms")
	c := connect(t, d.http)
	c.conn.Write([]byte("POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"))
	if line, _ := c.r.ReadString('\n'); !strings.Contains(line, " 100 ") {
		t.Fatalf("the request was answered %q, want that it waits for the body", line)
	}
	d.signal(t, syscall.SIGTERM)
	if code := d.exitCode(t); code != exitFailed || !strings.Contains(d.text(), errStopTimeout.Error()) {
		t.Errorf("exit code %d, log:\n%s", code, d.text())
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	const before, after = "correct-horse-battery", "another-horse-battery"
	dir := t.TempDir()
	token, level := filepath.Join(dir, "token"), filepath.Join(dir, "level")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(token, before)
	write(level, "info")
	d := startProcess(t, "HOLDFAST_AUTH_TOKEN_FILE="+token, "HOLDFAST_LOG_LEVEL_FILE="+level)
	standing := dial(t, d.native, before)

	write(token, after)
	write(level, "debug")
	d.signal(t, syscall.SIGHUP)
	if line := d.await(t, "reloaded"); line["auth_token_changed"] != true || line["log_level"] != "debug" {
		t.Errorf("reloaded: %v", line)
	}
	dial(t, d.native, after)
	if r := connect(t, d.native).do(wire.Request{Op: wire.OpHello, Version: wire.Version, Auth: []byte(before)}); r.Code != wire.CodeUnauthenticated {
		t.Errorf("the old token was answered %+v", r)
	}
	standing.acquire("job")
	ask(t, "GET", "http://"+d.http+"/livez")
	if line := d.await(t, "request"); line["level"] != "DEBUG" {
		t.Errorf("logged %v, want the request at debug", line)
	}

	// What is wrong changes nothing.
	write(token, "short")
	write(level, "info")
	d.signal(t, syscall.SIGHUP)
	line := d.await(t, "not reloaded: everything stays as it is")
	if problems, _ := line["problems"].([]any); len(problems) != 1 || !strings.Contains(problems[0].(string), "HOLDFAST_AUTH_TOKEN: in "+token+": its value has 5 characters") {
		t.Errorf("problems %v", line["problems"])
	}
	dial(t, d.native, after)
	if strings.Contains(d.text(), before) || strings.Contains(d.text(), after) {
		t.Errorf("a token shows in the log:\n%s", d.text())
	}
}

// C-63: the disk that holds the mark fills up. Grants go on and the log says so; the mark on disk stays whole; a start
// that cannot move it ahead is refused; and with room again tokens go on above all before.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	dir := filepath.Join(disk, "data")
	vars := []string{"HOLDFAST_DATA_DIR=" + dir}

	d := startProcess(t, vars...)
	kept, err := os.ReadFile(filepath.Join(dir, "token-mark"))
	if err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 64<<10), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	line := d.await(t, "the token mark cannot be stored: grants go on, but a restart with the clock set back could repeat tokens")
	if !strings.Contains(line["err"].(string), "no space left on device") {
		t.Errorf("logged %v", line)
	}
	c := dial(t, d.native, "")
	highest := c.acquire("job")
	if status, body := ask(t, "POST", "http://"+d.http+"/v1/acquire?key=other"); status != http.StatusOK {
		t.Errorf("HTTP answered %d %s", status, body)
	}
	d.signal(t, syscall.SIGKILL)
	d.exitCode(t)

	refused := launch(t, vars...)
	if code := refused.exitCode(t); code != exitFailed || !strings.Contains(refused.text(), "HOLDFAST_DATA_DIR: store token mark") {
		t.Errorf("a start on the full disk: exit code %d, log:\n%s", code, refused.text())
	}
	now, err := os.ReadFile(filepath.Join(dir, "token-mark"))
	if err != nil || len(now) != len(kept) {
		t.Errorf("the mark became %q (%v), it was %q", now, err, kept)
	}

	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if token := dial(t, startProcess(t, vars...).native, "").acquire("job"); token <= highest {
		t.Errorf("token %d is not above %d", token, highest)
	}
}

// The mark stays ahead of the tokens in use, from the first grant on.
func TestMarkIsAheadOfTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startProcess(t, "HOLDFAST_DATA_DIR="+dir)
	c := dial(t, d.native, "")
	for i, end := 0, time.Now().Add(1500*time.Millisecond); time.Now().Before(end); i++ {
		key := string(rune('a' + i%26))
		token := c.acquire(key)
		if mark := markOnDisk(t, dir); token >= mark {
			t.Fatalf("grant %d: token %d is not below the mark %d", i, token, mark)
		}
		c.do(wire.Request{Op: wire.OpRelease, Key: []byte(key), Token: token})
	}
}

// markOnDisk reads the mark as a person would.
func markOnDisk(t *testing.T, dir string) (mark uint64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "token-mark"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\nmark ")
	for _, digit := range after[:strings.Index(after, "\n")] {
		mark = 10*mark + uint64(digit-'0')
	}
	return mark
}
