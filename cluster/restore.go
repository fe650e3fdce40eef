// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/opdock/opdock/internal/filelock"
)

// RestoreError is returned by [Restore] if it fails after it has stopped the cluster. The cluster has the objects it had
// before.
type RestoreError struct {
	Err    error  // why the cluster did not start with the objects of the snapshot
	Status Status // of the cluster afterwards
	// NotStarted is why the cluster does not run again; nil if it does.
	NotStarted error
}

func (e *RestoreError) Error() string {
	if e.NotStarted != nil {
		return fmt.Sprintf("%v; %s has the objects that it had before, but does not start again: %v", e.Err, title(e.Status.Name), e.NotStarted)
	}
	return fmt.Sprintf("%v; %s runs again with the objects that it had before", e.Err, title(e.Status.Name))
}

func (e *RestoreError) Unwrap() error { return e.Err }

// Restore replaces all objects of the cluster of that name with those of the snapshot file Options.From. It stops the
// cluster if it runs, and starts it. Its port, keys and kubeconfig stay the same, and an ephemeral cluster is still
// ephemeral. If it runs, it also keeps Durable and History, unless they are set. A cluster that does not exist is created.
//
// A snapshot that cannot be used is refused before the cluster is stopped. If the start fails, Restore starts a cluster
// that was running again with the objects that it had before, and returns a [*RestoreError].
func Restore(ctx context.Context, o Options) (*Cluster, error) {
	o.Replace = true
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Name == "" {
		return nil, errors.New("restoring a snapshot: set Name; a private cluster has no objects to replace")
	}
	if _, err := CheckSnapshot(o.From); err != nil {
		return nil, err
	}
	binary, err := o.binary(ctx)
	if err != nil {
		return nil, err
	}
	o.Binary = binary
	release, err := lockRestore(o.Name)
	if err != nil {
		return nil, err
	}
	defer release()
	before, err := Find(o.Name)
	if err == nil {
		before, err = awaitStop(ctx, before)
	}
	if err != nil {
		return nil, err
	}
	o.Ephemeral = o.Ephemeral || before.Ephemeral
	if before.State == Alive {
		running, _, err := readState(before.Dir)
		if err != nil {
			return nil, fmt.Errorf("reading the state of %s: %w", title(o.Name), err)
		}
		o.Durable = o.Durable || running.Durable
		o.History = cmp.Or(o.History, running.History)
		if err := stopToStart(before); err != nil {
			return nil, fmt.Errorf("stopping %s: %w", title(o.Name), err)
		}
	}
	c, err := Start(ctx, o)
	if err == nil || before.State != Alive {
		return c, err
	}
	return nil, startAsBefore(ctx, o, err)
}

// stopToStart stops a cluster that is about to start again. SIGUSR1 makes an ephemeral one keep its state.
func stopToStart(s Status) error {
	how := syscall.SIGTERM
	if s.Ephemeral {
		how = syscall.SIGUSR1
	}
	return stopByLock(s.Dir, how, stopTimeout)
}

// startAsBefore starts a cluster with the objects that it had, even if the caller has lost patience: it was running.
func startAsBefore(ctx context.Context, o Options, cause error) error {
	result := &RestoreError{Err: cause}
	o.From, o.Replace, o.Progress = "", false, nil
	// Another process may have started it meanwhile, which is as good.
	if now, err := Find(o.Name); err != nil || now.State != Alive {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTimeout)
		defer cancel()
		_, result.NotStarted = Start(ctx, o)
	}
	var err error
	if result.Status, err = Find(o.Name); err != nil {
		return errors.Join(cause, err)
	}
	return result
}

// restartTimeout is far more than the second or two that a start takes.
const restartTimeout = 2 * time.Minute

// lockRestore keeps a second restore of the same cluster away, which would stop the cluster that the first one starts.
func lockRestore(name string) (release func(), err error) {
	if err := os.MkdirAll(clustersDir(), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of clusters: %w; set %s to use another location", err, homeEnv)
	}
	release, err = filelock.Take(filepath.Join(clustersDir(), ".restore-"+name))
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return nil, &StartError{
			Reason:  ReasonRestoring,
			Message: fmt.Sprintf("another process is restoring a snapshot in cluster %q", name),
			Hint:    "wait until it has finished",
		}
	case err != nil:
		return nil, fmt.Errorf("locking cluster %q: %w", name, err)
	default:
		return release, nil
	}
}

// awaitStop waits until a cluster that is stopping has ended, and returns its status then. It returns at once if the
// cluster is not stopping.
func awaitStop(ctx context.Context, s Status) (Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stopTimeout, tooSlow(s.PID, stopTimeout))
	defer cancel()
	ticker := time.NewTicker(lockPoll)
	defer ticker.Stop()
	// A process that ends empties the lock file before it releases the lock, so for a moment the file says nothing.
	for s.State == Alive && (s.Stopping || s.PID == 0) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return s, fmt.Errorf("waiting for %s to stop: %w", title(s.Name), context.Cause(ctx))
		}
		var err error
		if s, err = Find(s.Name); err != nil {
			return s, err
		}
	}
	return s, nil
}
