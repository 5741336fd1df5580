package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// wait serves until something asks to stop, and reloads at SIGHUP. It returns an error if a part of the daemon failed.
func (d *daemon) wait(ctx context.Context, signals <-chan os.Signal) error {
	for {
		select {
		case <-ctx.Done():
			d.log.Info("stopping", "reason", context.Cause(ctx).Error())
			return nil
		case err := <-d.failed:
			d.log.Error("stopping: a part has failed", "err", err)
			return err
		case err := <-d.node.Failed():
			d.log.Error("stopping: this node can't go on", "err", err)
			return err
		case sig := <-signals:
			if sig == syscall.SIGHUP {
				d.reload()
				continue
			}
			d.log.Info("stopping", "reason", sig.String())
			return nil
		}
	}
}

// reload takes over what may change while the node runs: the auth token, the cluster secrets and the log level, from their
// files. With any problem nothing changes.
func (d *daemon) reload() {
	fresh := loadSettings()
	if len(fresh.problems) > 0 {
		d.log.Error("not reloaded: everything stays as it is", "event", "reload", "problems", fresh.problems)
		return
	}
	changed := false
	if d.auth != nil {
		changed = d.auth.replace(fresh.AuthToken)
	}
	secretsChanged := d.links != nil && len(fresh.ClusterSecret) > 0 && d.replaceSecrets(fresh.ClusterSecret)
	d.level.Set(levelOf(fresh.LogLevel))
	d.log.Info("reloaded", "event", "reload", "auth_token_changed", changed, "cluster_secret_changed", secretsChanged,
		"log_level", string(fresh.LogLevel))
}

var (
	errStopTimeout  = errors.New("HOLDFAST_STOP_TIMEOUT is over")
	errSecondSignal = errors.New("a second signal: exit at once")
)

// stop ends the daemon in order, within HOLDFAST_STOP_TIMEOUT. With an error, something is left undone: the caller's
// exit ends it.
func (d *daemon) stop(signals <-chan os.Signal) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), d.cfg.StopTimeout.duration(), errStopTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.shutdown(ctx) }()
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() != nil {
				return fmt.Errorf("%w: %w", context.Cause(ctx), err)
			}
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case sig := <-signals:
			if sig != syscall.SIGHUP {
				return fmt.Errorf("%w (%v)", errSecondSignal, sig)
			}
		}
	}
}

// shutdown is the order in which things end. Each step says what breaks if it comes later or not at all.
func (d *daemon) shutdown(ctx context.Context) error {
	// Readiness says no while everything still works: else load balancers send new clients to a closed port.
	d.node.SetStopping()
	sleep(ctx, d.cfg.DrainDelay.duration())

	// The service goes to another node while this one can still hand it over: once the ports are closed, clients would have
	// nobody to ask until the others have noticed.
	leaveErr := d.node.Leave(ctx)

	// Long polls are answered: else each of them would hold the HTTP port open for up to its whole poll.
	d.web.EndPolls()

	// Native clients are told to go elsewhere, and what they were answered is flushed: else they would learn of the stop
	// by a broken connection, and a grant that was made would be lost on the way.
	nativeErr := d.native.Shutdown(ctx)

	// HTTP ends after TCP, so that health answers for as long as there is something to say.
	webErr := d.web.Shutdown(ctx)

	// Peers keep their links until nothing is served any more: a link that ends says that this process has.
	d.endLinks()

	// Deadlines and the mark run until nobody is left who can take a token.
	d.stopTimers()
	d.running.Wait()

	// The data directory is unlocked last: from now on another process may read the mark and start above it.
	var dirErr error
	if d.dir != nil {
		dirErr = d.dir.Close()
	}
	return errors.Join(leaveErr, nativeErr, webErr, dirErr)
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
