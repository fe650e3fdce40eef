// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Options configures a control plane. The zero value is a private cluster that ends with this process
// and leaves nothing behind.
type Options struct {
	// Name makes the state persistent: it is kept in Home()/clusters/<Name>, and a later Start with the same
	// name continues with it. A name is a DNS label of at most 40 characters. Without a name, the cluster is
	// private to this process and its state is removed with it.
	Name string

	// Nodes is how many simulated nodes there are at least. 0 means one for a new cluster and no change
	// for an existing one.
	Nodes int

	// Port of the API server on the loopback address. With 0, the kernel chooses a port for a new cluster, and
	// an existing cluster keeps its port.
	Port int

	// Ephemeral removes the state when the cluster stops. Without a Name it is implied.
	Ephemeral bool

	// Durable makes etcd wait for the disk, so even a power failure loses nothing.
	Durable bool

	// Detach keeps the cluster running after this process has ended. Otherwise it ends with this process,
	// even if that is killed, unless another process uses it.
	Detach bool

	// Kubernetes is the minor version to emulate, such as "1.34": the control plane's own version or one of
	// the three before it. If it is empty, an existing cluster keeps its version, and a new one uses
	// $OPDOCK_KUBERNETES or the version of the control plane. A cluster can move to a newer version, not to an
	// older one.
	Kubernetes string

	// From is the path of a snapshot file from [Cluster.Save]. The cluster starts with its objects. A cluster
	// that already has state is refused unless Replace is set.
	From string

	// Replace allows From to replace the objects of an existing cluster. Its port, keys and kubeconfig stay.
	// If the start fails, it keeps its old objects.
	Replace bool

	// History is how long old revisions of objects can be read at least, by listing with
	// resourceVersionMatch=Exact. 0 means five minutes, as in any cluster.
	History time.Duration

	// AdmissionPlugins are names of admission plugins of kube-apiserver to enable beside the default ones,
	// for instance OwnerReferencesPermissionEnforcement. With nil, the cluster keeps its plugins.
	AdmissionPlugins []string

	// Binary is the path of the control plane. Empty means what FindBinary finds, and if there is none,
	// that it is built from source first.
	Binary string

	// Log receives the control plane's log. nil means the file controlplane.log in the state folder. With
	// Detach only an *os.File will do, because this process may end before the control plane does.
	Log io.Writer

	// Progress, if not nil, is called for each step of the start, from one goroutine at a time.
	Progress func(Progress)
}

// Progress is one step on the way to a ready control plane.
type Progress struct {
	Step    string        // build, state, etcd, apiserver, controllers or nodes
	Message string        // for people
	Elapsed time.Duration // since the start of the build for StepBuild, and otherwise since the start of the process
}

// StepBuild is the Step of progress while the control plane is compiled. It is reported at least once a
// second.
const StepBuild = "build"

// Start starts a control plane and returns when a Deployment could become Available. If ctx ends before
// that, Start stops the control plane, and the error wraps ctx.Err(). Afterwards ctx has no effect: Stop
// ends the cluster, and unless Options.Detach is set, so does the end of this process.
//
// If the control plane refuses to start, the error is a [*StartError] with the reason.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	binary, err := o.binary(ctx)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", title(o.Name), err)
	}
	if err := refuseIfAlive(ctx, o); err != nil {
		return nil, err
	}
	dir, err := makeStateDir(o.Name)
	if err != nil {
		return nil, err
	}
	c, err := startIn(ctx, o, binary, dir)
	if err != nil && o.Name == "" {
		// The process has removed it already, unless it was killed or never ran.
		_ = os.RemoveAll(dir)
	}
	return c, err
}

func (o *Options) check() error {
	if o.Name != "" {
		if err := checkName(o.Name); err != nil {
			return err
		}
	}
	if o.Nodes < 0 {
		return fmt.Errorf("starting %s: %d is not a valid number of nodes", title(o.Name), o.Nodes)
	}
	if o.Port < 0 || o.Port > 65535 {
		return fmt.Errorf("starting %s: %d is not a valid port; use 1 to 65535, or 0 for a free port", title(o.Name), o.Port)
	}
	if _, isFile := o.Log.(*os.File); o.Detach && o.Log != nil && !isFile {
		return fmt.Errorf("starting %s: the log of a detached cluster must be an *os.File, not a %T, because it outlives this process",
			title(o.Name), o.Log)
	}
	if o.History < 0 {
		return fmt.Errorf("starting %s: %v is not a valid history", title(o.Name), o.History)
	}
	if o.Replace && o.From == "" {
		return fmt.Errorf("starting %s: Replace needs From, the source of the new objects", title(o.Name))
	}
	if o.Detach && o.Name == "" {
		return errors.New("starting the private cluster: a detached cluster needs a name; set Name")
	}
	return nil
}

// binary returns an absolute path, because the process is started in another directory.
func (o *Options) binary(ctx context.Context) (string, error) {
	if o.Binary != "" {
		if err := checkExecutable(o.Binary); err != nil {
			return "", fmt.Errorf("control plane binary: %w", err)
		}
		return absolute(o.Binary), nil
	}
	return EnsureBinary(ctx, func(p BuildProgress) {
		o.progress(Progress{Step: StepBuild, Message: p.String(), Elapsed: p.Elapsed})
	})
}

func (o *Options) progress(p Progress) {
	if o.Progress != nil {
		o.Progress(p)
	}
}

// refuseIfAlive saves a start that is bound to fail, and keeps it out of the running cluster's log. The
// control plane checks again, under the lock. A cluster that is stopping is waited for. An incomplete one would be
// empty, which is not what the caller expects.
func refuseIfAlive(ctx context.Context, o Options) error {
	name := o.Name
	if name == "" {
		return nil
	}
	status, err := Find(name)
	if err == nil {
		status, err = awaitStop(ctx, status)
	}
	switch {
	case err != nil:
		return err
	case status.State == Incomplete && o.From == "":
		return incomplete(status)
	case status.State != Alive:
		return nil
	}
	return &StartError{
		Reason:  ReasonLocked,
		Message: fmt.Sprintf("cluster %q is already running%s with its state in %s", name, pidSuffix(status.PID), status.Dir),
		Hint:    fmt.Sprintf("use it, or stop it first with %q", "opdock down --name "+name),
	}
}

func startIn(ctx context.Context, o Options, binary, dir string) (*Cluster, error) {
	log, err := openLog(dir, o.Log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", title(o.Name), err)
	}
	defer log.close()
	p, err := spawn(binary, dir, o, log)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", title(o.Name), err)
	}
	ready, err := p.awaitReady(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &Cluster{name: o.Name, dir: dir, kubeconfig: ready.Kubeconfig, process: p, binary: binary}
	if c.kubeconfig == "" {
		c.kubeconfig = filepath.Join(dir, kubeconfigFileName)
	}
	if c.config, err = loadConfig(c.kubeconfig); err != nil {
		p.end(exitGrace)
		return nil, fmt.Errorf("starting %s: %w", c.title(), err)
	}
	return c, nil
}
