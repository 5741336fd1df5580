package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal; the test sits at its keyboard.
type terminal struct {
	t      *testing.T
	master *os.File
	lines  *bufio.Scanner
}

// startAtTerminal starts a program as the leader of a session with a terminal.
func startAtTerminal(t *testing.T, env []string, argv ...string) (*terminal, *exec.Cmd) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	raw.Control(func(fd uintptr) {
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	if err := master.SetDeadline(time.Now().Add(tooLong)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // of a failed test
		cmd.Wait()
	})
	return &terminal{t, master, bufio.NewScanner(master)}, cmd
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// wantLine reads up to a line that ends with want: what is typed is echoed.
func (x *terminal) wantLine(want string) {
	x.t.Helper()
	if !x.lines.Scan() {
		x.t.Fatalf("the terminal ends: %v; want %q", x.lines.Err(), want)
	}
	if got := strings.TrimSpace(x.lines.Text()); !strings.HasSuffix(got, want) {
		x.t.Fatalf("the terminal shows %q; want %q", got, want)
	}
}

// At a terminal the kernel gives Ctrl-C to holdfast and to the command: the
// command must not get it a second time. What others send is passed on.
func TestRunAtATerminal(t *testing.T) {
	s := startServer(t)
	x, cmd := startAtTerminal(t, s.env(), holdfastPath, "run", "job", "--", "/bin/sh", "-c",
		`trap 'echo INT' INT; trap 'echo QUIT' QUIT; trap 'echo HUP' HUP; trap 'echo TERM; exit 3' TERM; echo ready; while :; do read line && echo "read $line"; done`)
	x.wantLine("ready")
	for range 3 {
		x.press("\x03")
		x.wantLine("INT")
		x.press("\x1c")
		x.wantLine("QUIT")
	}
	x.press("text\n") // the command reads from the terminal
	x.wantLine("text")
	x.wantLine("read text")
	for _, sig := range []syscall.Signal{unix.SIGHUP, unix.SIGTERM} {
		cmd.Process.Signal(sig)
		x.wantLine(strings.TrimPrefix(unix.SignalName(sig), "SIG"))
	}
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%v; want exit code 3", cmd.ProcessState)
	}
}

// Ctrl-Z stops both, and the shell's fg lets both go on.
func TestRunStopsAndContinues(t *testing.T) {
	s := startServer(t)
	x, cmd := startAtTerminal(t, append(s.env(), "HF="+holdfastPath), "/bin/sh", "-m", "-c",
		`"$HF" run job -- /bin/sh -c 'echo ready; read line; echo "read $line"; exit 4'; echo "stopped $?"; fg >/dev/null; echo "done $?"`)
	x.wantLine("ready")
	x.press("\x1a")
	x.wantLine(fmt.Sprintf("stopped %d", 128+int(unix.SIGTSTP)))
	x.press("text\n")
	x.wantLine("text")
	x.wantLine("read text")
	x.wantLine("done 4")
	cmd.Wait()
}

// A Ctrl-C while waiting withdraws the request.
func TestRunInterruptedAtATerminal(t *testing.T) {
	s := startServer(t)
	h := s.hold("job")
	x, cmd := startAtTerminal(t, s.env(), holdfastPath, "run", "job", "--", "echo", "ran")
	h.awaitWaiter()
	x.press("\x03")
	x.wantLine(`holdfast: signal SIGINT while waiting for "job": withdrawn`)
	if cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v; want exit code 130", cmd.ProcessState)
	}
	h.release()
	s.wantFree("job")
}
