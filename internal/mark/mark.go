// Package mark keeps the token mark: the one fact that must outlive the
// process. Every fencing token taken so far lies below the mark kept on disk, so
// a node that starts above it can never issue a token twice or go back,
// whatever became of the clock meanwhile.
//
// The mark is written by reservation, a little ahead of the tokens in use, and
// never per grant. Writing it is atomic: a full disk, a crash in the middle or a
// power cut leave the old mark or the new one, never half of one.
package mark

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

const (
	markName = "token-mark"
	tempName = "token-mark.new"
)

// ErrInUse says that another process has the directory open.
var ErrInUse = errors.New("in use by another process")

// Dir is a data directory, open and locked against every other process.
type Dir struct {
	// Static after Open.
	path   string
	lock   *os.File
	create func(path string) (*os.File, error) // a seam for tests: a disk that is full

	mu   sync.Mutex // guards what follows, and is held while writing: only writers wait for each other
	kept uint64     // the mark on disk
}

// Open locks the directory and reads its mark: 0 where none was kept yet. The directory itself is made if it is
// missing, its parents are not. An error says what is wrong with which file: ErrInUse where another process has it.
func Open(path string) (*Dir, uint64, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, 0, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, 0, err
	}
	d := &Dir{path: path, lock: lock, create: create}
	if d.kept, err = readMark(filepath.Join(path, markName)); err != nil {
		return nil, 0, errors.Join(err, lock.Close())
	}
	return d, d.kept, nil
}

// Store keeps the mark, on disk when it returns. A mark that is not above the one kept changes nothing: marks never
// go back. After an error the old mark still stands.
func (d *Dir) Store(mark uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if mark <= d.kept {
		return nil
	}
	if err := d.replace(encode(mark)); err != nil {
		return fmt.Errorf("store token mark: %w", err)
	}
	d.kept = mark
	return nil
}

// Close unlocks the directory.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lock.Close()
}

// replace puts text in the mark's place. The order is what makes it atomic: the new file is wholly on disk before
// it gets the name, and the name is on disk before anyone relies on it.
func (d *Dir) replace(text []byte) error {
	temp := filepath.Join(d.path, tempName)
	if err := d.writeSynced(temp, text); err != nil {
		// On a full disk this gives the space back; where it fails as well, the first error is the one to tell.
		_ = os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, filepath.Join(d.path, markName)); err != nil {
		return err
	}
	return syncDir(d.path)
}

func (d *Dir) writeSynced(path string, text []byte) error {
	f, err := d.create(path)
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
