package mark

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// lockVariable makes the test binary the second process of TestSecondProcess.
const lockVariable = "MARK_TEST_OPEN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockVariable); dir != "" {
		_, _, err := Open(dir)
		if err != nil {
			os.Stdout.WriteString(err.Error())
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) (*Dir, uint64) {
	t.Helper()
	d, kept, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, kept
}

func store(t *testing.T, d *Dir, mark uint64) {
	t.Helper()
	if err := d.Store(mark); err != nil {
		t.Fatal(err)
	}
}

// reopened closes d and returns what a next process would find.
func reopened(t *testing.T, d *Dir) uint64 {
	t.Helper()
	d.Close()
	next, kept, err := Open(d.path)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	return kept
}

func TestMarkOutlivesTheProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	d, kept := open(t, dir)
	if kept != 0 {
		t.Errorf("a new directory keeps %d, want 0", kept)
	}
	store(t, d, 1<<52+8)
	if got := reopened(t, d); got != 1<<52+8 {
		t.Errorf("kept %d, want %d", got, uint64(1<<52+8))
	}
}

func TestMarkNeverGoesBack(t *testing.T) {
	d, _ := open(t, t.TempDir())
	store(t, d, 100)
	store(t, d, 99)
	if got := reopened(t, d); got != 100 {
		t.Errorf("kept %d, want 100", got)
	}
}

func TestFileIsForPeople(t *testing.T) {
	d, _ := open(t, t.TempDir())
	store(t, d, 12345678)
	text, err := os.ReadFile(filepath.Join(d.path, "token-mark"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `# Holdfast's token mark: every fencing token taken so far lies below it. Do not edit or delete.
version 1
mark 12345678
crc32 b40be589
`
	if string(text) != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestParentIsNotMade(t *testing.T) {
	_, _, err := Open(filepath.Join(t.TempDir(), "missing", "data"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that the parent is missing", err)
	}
}

// Every cut and every changed byte is noticed: never a wrong mark, never 0.
func TestDamage(t *testing.T) {
	whole := encode(81_985_529_216)
	damaged := map[string][]byte{"extra": append(whole[:len(whole):len(whole)], '\n')}
	for i := range whole {
		damaged["cut at "+string(whole[:i])] = whole[:i]
		changed := []byte(string(whole))
		changed[i] ^= 1
		damaged["changed after "+string(whole[:i])] = changed
	}
	for name, text := range damaged {
		if mark, err := decode(text); err == nil {
			t.Errorf("%s: read as %d", name, mark)
		}
	}
}

func TestDamageIsToldPrecisely(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "is damaged or cut short (0 bytes)"},
		"cut":      {string(encode(77))[:110], "is damaged or cut short (110 bytes)"},
		"edited":   {strings.Replace(string(encode(77)), "mark 77", "mark 78", 1), "is damaged: its checksum does not fit"},
		"newer":    {header + "version 2\nsomething else\n", "is of version 2, and this program knows version 1"},
		"stranger": {"hello\n", "is damaged or cut short (6 bytes)"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "token-mark")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := Open(dir)
			if err == nil || !strings.Contains(err.Error(), "token mark "+file+": "+c.want) {
				t.Errorf("got %v, want %q of %s", err, c.want, file)
			}
			// A refused directory is not left locked.
			os.Remove(file)
			open(t, dir)
		})
	}
}

// full is a disk that takes a file's name and none of its bytes: /dev/full answers each write as a full disk does.
func full(path string) (*os.File, error) {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return nil, err
	}
	return os.OpenFile("/dev/full", os.O_WRONLY, 0)
}

// C-63
func TestFullDiskKeepsTheOldMark(t *testing.T) {
	d, _ := open(t, t.TempDir())
	store(t, d, 100)
	d.create = full
	if err := d.Store(200); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v, want no space", err)
	}
	d.create = create
	if text, _ := os.ReadFile(filepath.Join(d.path, "token-mark")); string(text) != string(encode(100)) {
		t.Errorf("the old mark became %q", text)
	}
	store(t, d, 300)
	if got := reopened(t, d); got != 300 {
		t.Errorf("kept %d, want 300", got)
	}
}

// A crash between writing the new file and naming it leaves a stranger behind, which stops nothing.
func TestCrashBeforeRename(t *testing.T) {
	d, _ := open(t, t.TempDir())
	store(t, d, 100)
	if err := os.WriteFile(filepath.Join(d.path, tempName), []byte("half a ma"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := reopened(t, d); got != 100 {
		t.Errorf("kept %d, want 100", got)
	}
	d, _ = open(t, d.path)
	store(t, d, 200)
	if got := reopened(t, d); got != 200 {
		t.Errorf("kept %d, want 200", got)
	}
}

func TestSecondProcess(t *testing.T) {
	d, _ := open(t, t.TempDir())
	second := func() string {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), lockVariable+"="+d.path)
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := second(); !strings.Contains(got, "data directory "+d.path+": "+ErrInUse.Error()+", number ") {
		t.Errorf("a second process got %q, want that the directory is in use, and by whom", got)
	}
	d.Close()
	if got := second(); got != "" {
		t.Errorf("after the first has closed it, a second process got %q", got)
	}
}

func TestOpenTwiceInOneProcess(t *testing.T) {
	d, _ := open(t, t.TempDir())
	if _, _, err := Open(d.path); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want %v", err, ErrInUse)
	}
}
