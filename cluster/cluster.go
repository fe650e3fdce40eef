// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a running control plane, started by this process or by another. Its methods may be called
// from several goroutines.
type Cluster struct {
	name       string
	dir        string
	kubeconfig string
	config     *rest.Config
	process    *process // nil for a cluster that Open found
	binary     string   // that runs it; empty for a cluster that Open found

	stopping sync.Mutex // held during Stop, so a second caller waits for the first
	stopped  bool       // by Stop: a process that has this name later is another cluster
}

// Open returns the cluster of that name if it is running, and a [*NotRunningError] if it is not. It need
// not have been started by this process.
func Open(name string) (*Cluster, error) {
	status, err := Find(name)
	if err != nil {
		return nil, err
	}
	if status.State != Alive {
		return nil, &NotRunningError{Status: status}
	}
	c := &Cluster{name: name, dir: status.Dir, kubeconfig: filepath.Join(status.Dir, kubeconfigFileName)}
	c.config, err = loadConfig(c.kubeconfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cluster %q%s is still starting; try again in a moment", name, pidSuffix(status.PID))
	}
	if err != nil {
		return nil, fmt.Errorf("opening cluster %q: %w", name, err)
	}
	return c, nil
}

// Name is the name the cluster was started with; empty for a private one.
func (c *Cluster) Name() string { return c.name }

// Dir is the folder with the cluster's state.
func (c *Cluster) Dir() string { return c.dir }

// Config is how an administrator talks to the cluster. Each call returns a copy, to be changed at will.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig is the path of the administrator's kubeconfig file, for kubectl and other processes.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Done is closed when the control plane process has ended; [Cluster.Err] then returns the reason. It is
// nil, and so never ready, for a cluster from [Open], because only a parent is notified of the end of a
// process.
func (c *Cluster) Done() <-chan struct{} {
	if c.process == nil {
		return nil
	}
	return c.process.done
}

// Err is nil while the control plane runs and after a clean stop. Otherwise it describes how the process
// ended.
func (c *Cluster) Err() error {
	if c.process == nil || !c.process.ended() || c.process.exit == nil {
		return nil
	}
	return fmt.Errorf("%s stopped unexpectedly: %w%s", c.title(), c.process.exit, c.process.log.hint())
}

// Stop stops the control plane in order and returns when it has ended and its state may be used again.
// To stop a cluster that has already ended is no error. A detached cluster that does not end in time is
// left alone with an error; one that belongs to this process is then killed.
func (c *Cluster) Stop() error {
	c.stopping.Lock()
	defer c.stopping.Unlock()
	if c.stopped {
		return nil
	}
	var err error
	if c.process != nil {
		err = c.process.stop(stopTimeout)
	} else {
		err = stopByLock(c.dir, syscall.SIGTERM, stopTimeout)
	}
	if err != nil {
		return fmt.Errorf("stopping %s: %w", c.title(), err)
	}
	c.stopped = true
	return nil
}

func (c *Cluster) title() string { return title(c.name) }

// title is what messages call a cluster.
func title(name string) string {
	if name == "" {
		return "the private cluster"
	}
	return fmt.Sprintf("cluster %q", name)
}

func loadConfig(kubeconfig string) (*rest.Config, error) {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	return withoutThrottle(config), nil
}

// withoutThrottle lifts client-go's limit of five requests a second, which protects API servers that
// many share. This one serves a single developer and has its own priority and fairness.
func withoutThrottle(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = 1000, 2000
	return config
}
