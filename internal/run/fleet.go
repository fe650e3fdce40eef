// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/opdock/opdock/internal/filelock"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/target"
	"github.com/opdock/opdock/why"
)

// runningFleet is the fleet's manager in this process.
type runningFleet struct {
	ended  chan struct{} // closed when it has ended
	err    error         // why, if not because of stop; set before ended is closed
	cancel context.CancelFunc
	log    *os.File
	why    *why.Recorder
}

// startFleet starts the manager. It outlives the context of the verb, because it has to be stopped gracefully.
func startFleet(t *target.Target, logPath string) (*runningFleet, error) {
	log, err := openLog(t.Title, logPath)
	if err != nil {
		return nil, err
	}
	logger := zap.New(zap.WriteTo(log), zap.ConsoleEncoder())
	librarylog.To(log)
	recorder := why.New(why.Options{Logger: logger.WithName("why")})
	mgr, err := manager.New(t.Config, manager.Options{Namespaces: namespaces(t), Logger: logger, Why: recorder})
	if err != nil {
		log.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &runningFleet{ended: make(chan struct{}), cancel: cancel, log: log, why: recorder}
	go func() {
		defer close(f.ended)
		f.err = mgr.Start(ctx)
	}()
	return f, nil
}

// Claim keeps other processes from running the fleet on a cluster of Opdock. Claim it before the cluster starts: a process
// that is refused after that would stop a cluster that another one uses.
func Claim(home, cluster string) (release func(), err error) {
	dir := filepath.Join(home, "fleets")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of fleets: %w", err)
	}
	release, err = filelock.Take(filepath.Join(dir, cluster+".lock"))
	return release, explainLock(err, fmt.Sprintf("cluster %q", cluster))
}

// explainLock explains why a lock cannot be taken. Only its holder runs the fleet on a cluster.
func explainLock(err error, title string) error {
	switch {
	case errors.Is(err, filelock.ErrHeld):
		return hint.With(fmt.Errorf("another opdock run is already running the fleet on %s", title),
			"stop that one first, or select another cluster with --name")
	case err != nil:
		return fmt.Errorf("locking the fleet on %s: %w", title, err)
	default:
		return nil
	}
}

// openLog starts a new log and locks it.
func openLog(title, path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("creating the directory of the fleet's log: %w", err)
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the fleet's log: %w", err)
	}
	if err := explainLock(filelock.Exclusive(log), title); err != nil {
		log.Close()
		return nil, err
	}
	if err := log.Truncate(0); err != nil {
		log.Close()
		return nil, fmt.Errorf("truncating the fleet's log: %w", err)
	}
	return log, nil
}

// stop waits for running reconciles.
func (f *runningFleet) stop() {
	f.cancel()
	<-f.ended
	librarylog.Discard() // some of their goroutines end after the manager
	f.log.Close()
}
