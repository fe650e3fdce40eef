// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/opdock/opdock/cluster"
)

// aliveInterval is the interval of checks whether a cluster that was not started here is still alive.
const aliveInterval = 2 * time.Second

// Open returns the cluster that is meant. One of Opdock's is started if it does not run.
func (o *Opener) Open(ctx context.Context, w Which) (*Target, error) {
	if w.Foreign() {
		return o.foreign(w)
	}
	status, err := o.Dock.Find(w.Name)
	if err != nil {
		return nil, err
	}
	if status.State == cluster.Alive && !status.Stopping {
		return o.OpenRunning(w)
	}
	c, err := o.Start(ctx, w, status)
	if err != nil {
		return nil, err
	}
	return o.ours(c, w, true)
}

// OpenRunning returns the cluster that is meant, and a *cluster.NotRunningError if it is one of Opdock's that does not run.
func (o *Opener) OpenRunning(w Which) (*Target, error) {
	if w.Foreign() {
		return o.foreign(w)
	}
	c, err := o.Dock.Open(w.Name)
	if err != nil {
		return nil, err
	}
	return o.ours(c, w, false)
}

func (o *Opener) ours(c Running, w Which, started bool) (*Target, error) {
	release := func() {}
	if !started {
		var err error
		if release, err = c.Use(); err != nil {
			return nil, err
		}
	}
	watching, stopWatching := context.WithCancel(context.Background())
	t := &Target{
		Title: fmt.Sprintf("cluster %q", w.Name), Ours: true, Started: started, Namespace: w.Namespace, FileName: w.Name,
		Kubeconfig:   func() ([]byte, error) { return os.ReadFile(c.Kubeconfig()) },
		KubeconfigAs: certificateKubeconfig(c),
		Done:         sync.OnceValue(func() <-chan struct{} { return o.watchEnd(watching, c, w.Name) }),
		Ended:        func() error { return o.endOf(w.Name) },
		Leave: func() error {
			stopWatching()
			release()
			return o.leave(c, w, started)
		},
	}
	status, err := o.Dock.Find(w.Name)
	if err == nil {
		t.StateDir = status.Dir
		t.Config, _, err = o.LoadKubeconfig(c.Kubeconfig(), "")
	}
	if err != nil {
		return nil, errors.Join(err, t.Leave())
	}
	return t, nil
}

func (o *Opener) foreign(w Which) (*Target, error) {
	config, loaded, err := o.LoadKubeconfig(w.Kubeconfig, w.Context)
	if err != nil {
		return nil, err
	}
	t := &Target{
		Title: config.Host, Namespace: w.Namespace, FileName: fileNameOf(config), Config: config,
		Kubeconfig: func() ([]byte, error) { return selfContained(loaded, w.Context) },
		KubeconfigAs: func(ctx context.Context, namespace, name string) ([]byte, error) {
			return tokenKubeconfig(ctx, config, namespace, name)
		},
		Done:  func() <-chan struct{} { return nil },
		Ended: func() error { return nil },
		Leave: func() error { return nil },
	}
	if namespace, _, err := loaded.Namespace(); err == nil && w.NamespaceOfContext {
		t.Namespace = namespace
	}
	return t, nil
}

// watchEnd returns a channel that is closed when the cluster ends. Only the process that started a cluster is
// notified; others have to poll.
func (o *Opener) watchEnd(ctx context.Context, c Running, name string) <-chan struct{} {
	if done := c.Done(); done != nil {
		return done
	}
	ended := make(chan struct{})
	go func() {
		ticker := time.NewTicker(aliveInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if o.endOf(name) != nil {
					close(ended)
					return
				}
			}
		}
	}()
	return ended
}

// leave leaves the cluster as it was found.
func (o *Opener) leave(c Running, w Which, started bool) error {
	status, err := o.Dock.Find(w.Name)
	switch {
	case err == nil && status.State != cluster.Alive:
		return nil // it has ended before us, which was already reported
	case !started:
		o.Leaving(StillRunning, w.Name)
		return nil
	case w.Keep:
		o.Leaving(Kept, w.Name)
		return nil
	case c.InUse():
		o.Leaving(Shared, w.Name)
		return nil
	}
	o.Leaving(Stopping, w.Name)
	if err := c.Stop(); err != nil {
		return err
	}
	o.Leaving(Stopped, w.Name)
	return nil
}

// endOf is nil while the cluster is alive.
func (o *Opener) endOf(name string) error {
	status, err := o.Dock.Find(name)
	if err != nil || status.State == cluster.Alive {
		return err
	}
	return &cluster.NotRunningError{Status: status}
}
