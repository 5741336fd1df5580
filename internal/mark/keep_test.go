package mark

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeepStoresOnceASecond(t *testing.T) {
	d, _ := open(t, t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		calls := uint64(0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Keep(ctx, nil, func() uint64 { calls++; return 1000 * calls }, func(err error) { t.Error(err) })
		}()
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		cancel()
		<-done
		if calls != 10 || d.kept != 10_000 {
			t.Errorf("asked %d times and kept %d in ten seconds, want 10 and 10000", calls, d.kept)
		}
	})
}

// A mark that leaps, as when another node's tokens are heard of, does not wait
// for the second to be over.
func TestKeepStoresALeapAtOnce(t *testing.T) {
	d, _ := open(t, t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		moved, done := make(chan struct{}, 1), make(chan struct{})
		go func() {
			defer close(done)
			d.Keep(ctx, moved, func() uint64 { return 5000 }, func(err error) { t.Error(err) })
		}()
		moved <- struct{}{}
		synctest.Wait()
		cancel()
		<-done
		if d.kept != 5000 {
			t.Errorf("kept %d, want 5000", d.kept)
		}
	})
}

// C-63: trouble with the disk is told at once, then once a minute, and its end is told too.
func TestKeepReportsTrouble(t *testing.T) {
	d, _ := open(t, t.TempDir())
	var freed atomic.Bool
	d.create = func(path string) (*os.File, error) {
		if freed.Load() {
			return create(path)
		}
		return full(path)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var at []time.Duration
		var errs []error
		mark := uint64(0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			d.Keep(ctx, nil, func() uint64 { mark++; return mark }, func(err error) {
				at = append(at, time.Since(start))
				errs = append(errs, err)
			})
		}()
		time.Sleep(90*time.Second + time.Millisecond)
		synctest.Wait()
		freed.Store(true)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		cancel()
		<-done

		if len(errs) != 3 || !errors.Is(errs[0], syscall.ENOSPC) || !errors.Is(errs[1], syscall.ENOSPC) || errs[2] != nil {
			t.Fatalf("reports %v, want no space twice, then nil", errs)
		}
		if at[0] != time.Second || at[1] != 61*time.Second || at[2] != 91*time.Second {
			t.Errorf("reports at %v, want 1s, 61s and 91s", at)
		}
		if d.kept != 100 {
			t.Errorf("kept %d after the trouble, want 100", d.kept)
		}
	})
}
