// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"

	"github.com/opdock/opdock/cluster"
)

// Running is the part of a running cluster that the verbs need.
type Running interface {
	Kubeconfig() string
	// KubeconfigAs returns a kubeconfig with exactly this user and these groups.
	KubeconfigAs(user string, groups ...string) ([]byte, error)
	Stop() error
	Done() <-chan struct{}
	// Use keeps the cluster running until release is called, even if the process that started it ends; InUse reports
	// whether a process does.
	Use() (release func(), err error)
	InUse() bool
	// Keep does the same until the cluster is stopped.
	Keep() error
	// Fork starts another cluster with the same objects.
	Fork(context.Context, cluster.Options) (Running, error)
}

// Dock holds the functions of package cluster that the verbs need, as fields that a test can
// replace.
type Dock struct {
	Start func(context.Context, cluster.Options) (Running, error)
	// Restore replaces the objects of a cluster with those of a snapshot.
	Restore func(context.Context, cluster.Options) (Running, error)

	Open func(name string) (Running, error)
	Find func(name string) (cluster.Status, error)
	List func() ([]cluster.Status, error)
	// ListAll also lists what starts that failed have left.
	ListAll func() ([]cluster.Status, error)
	Delete  func(name string) error
	// Save writes the objects of the cluster of that name to a file. Without overwrite, an existing file is an error.
	Save func(ctx context.Context, name, path string, overwrite bool) (cluster.Snapshot, error)
	// SnapshotFile returns the path of a snapshot that is given by name or path.
	SnapshotFile   func(nameOrPath string) (string, error)
	ReadSnapshot   func(path string) (cluster.Snapshot, error)
	CheckSnapshot  func(path string) (cluster.Snapshot, error)
	Snapshots      func() ([]cluster.Snapshot, error)
	DeleteSnapshot func(name string) error
	// Home is the folder of what opdock keeps.
	Home func() string
	// MarkStopped turns a dead cluster into a stopped one.
	MarkStopped func(name string) error

	FindBinary func() (string, error)
	// EnsureBinary finds the binary, or builds it to where FindBinary finds it from then on.
	EnsureBinary func(ctx context.Context, progress func(cluster.BuildProgress)) (string, error)
	BuildBinary  func(ctx context.Context, out string, progress func(cluster.BuildProgress)) error
	Assets       func(binary string) (string, error)
	// Versions returns the versions of the components in a control plane binary.
	Versions func(ctx context.Context, binary string) (ControlPlaneVersions, error)
}

// ControlPlaneVersions are the versions of the components in a control plane binary.
type ControlPlaneVersions struct {
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Kwok       string `json:"kwok"`
	// Emulates are the minor versions of Kubernetes that can be selected, such as 1.34.
	Emulates []string `json:"emulates,omitempty"`
}

// NewDock returns the functions of package cluster.
func NewDock() Dock {
	return Dock{
		Start: func(ctx context.Context, o cluster.Options) (Running, error) {
			return running(cluster.Start(ctx, o))
		},
		Restore: func(ctx context.Context, o cluster.Options) (Running, error) {
			return running(cluster.Restore(ctx, o))
		},
		Open: func(name string) (Running, error) { return running(cluster.Open(name)) },
		Save: func(ctx context.Context, name, path string, overwrite bool) (cluster.Snapshot, error) {
			c, err := cluster.Open(name)
			if err != nil {
				return cluster.Snapshot{}, err
			}
			if overwrite {
				return c.Save(ctx, path)
			}
			return c.SaveNew(ctx, path)
		},
		SnapshotFile:   cluster.SnapshotFile,
		ReadSnapshot:   cluster.ReadSnapshot,
		CheckSnapshot:  cluster.CheckSnapshot,
		Snapshots:      cluster.Snapshots,
		DeleteSnapshot: cluster.DeleteSnapshot,

		Find:         cluster.Find,
		List:         cluster.List,
		ListAll:      cluster.ListAll,
		Delete:       cluster.Delete,
		Home:         cluster.Home,
		MarkStopped:  cluster.MarkStopped,
		EnsureBinary: cluster.EnsureBinary,
		FindBinary:   cluster.FindBinary,
		BuildBinary:  cluster.BuildBinary,
		Assets:       cluster.Assets,
		Versions:     askVersions,
	}
}

// running keeps a nil *cluster.Cluster from becoming an interface that is not nil.
func running(c *cluster.Cluster, err error) (Running, error) {
	if err != nil {
		return nil, err
	}
	return runningCluster{c}, nil
}

type runningCluster struct{ *cluster.Cluster }

func (c runningCluster) Fork(ctx context.Context, o cluster.Options) (Running, error) {
	return running(c.Cluster.Fork(ctx, o))
}

func (c runningCluster) KubeconfigAs(user string, groups ...string) ([]byte, error) {
	identity, err := c.As(user, groups...)
	if err != nil {
		return nil, err
	}
	return identity.Kubeconfig()
}

func askVersions(ctx context.Context, binary string) (ControlPlaneVersions, error) {
	var versions ControlPlaneVersions
	out, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return versions, fmt.Errorf("running %s version: %w", binary, err)
	}
	if err := json.Unmarshal(out, &versions); err != nil {
		return versions, fmt.Errorf("decoding the output of %s version: %w", binary, err)
	}
	return versions, nil
}
