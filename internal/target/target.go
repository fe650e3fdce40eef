// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target selects the cluster, connects to it and releases it. The cluster is either an Opdock
// cluster, which the package starts if it is not running, or a cluster from a kubeconfig. All verbs
// that use a cluster use this package.
package target

import (
	"context"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster"
)

// Which is the user's selection of a cluster.
type Which struct {
	// Name is the name of one of Opdock's clusters.
	Name string
	// Kubeconfig and Context name a cluster that Opdock did not make; without them it is the one called Name.
	Kubeconfig string
	Context    string
	// Namespace is where objects go that name none.
	Namespace string
	// NamespaceOfContext replaces Namespace by that of the kubeconfig's context.
	NamespaceOfContext bool

	// Nodes, Keep and Timeout are for a cluster that has to be started: the number of nodes (0: unchanged), whether it
	// keeps running at the end, and how long its start may take.
	Nodes   int
	Keep    bool
	Timeout time.Duration
}

// Foreign reports whether the cluster is not one of Opdock's.
func (w *Which) Foreign() bool { return w.Kubeconfig != "" || w.Context != "" }

// Target is a cluster that can be used.
type Target struct {
	// Title is how the cluster is called in messages.
	Title string
	// Ours is false for a cluster that Opdock did not make.
	Ours bool
	// Started is whether it was started to be used here.
	Started bool
	// Namespace is where objects go that name none.
	Namespace string
	// StateDir is the state directory of a cluster of Opdock; empty for others.
	StateDir string
	// FileName is a file name for the cluster.
	FileName string

	// Config is an administrator's, and Kubeconfig returns the same as a file.
	Config     *rest.Config
	Kubeconfig func() ([]byte, error)
	// KubeconfigAs returns a kubeconfig of a service account that exists.
	KubeconfigAs func(ctx context.Context, namespace, name string) ([]byte, error)

	// Done returns a channel that is closed when the cluster ends; nil if that is unknown.
	Done func() <-chan struct{}
	// Ended returns why the cluster has ended; nil while it runs.
	Ended func() error
	// Leave leaves the cluster as it was found.
	Leave func() error
}

// Leaving is what becomes of a cluster of Opdock's that is left.
type Leaving string

// What becomes of a cluster.
const (
	StillRunning Leaving = "StillRunning" // it was running before
	Kept         Leaving = "Kept"         // it was started here, and is to go on
	Shared       Leaving = "Shared"       // it was started here, and another process uses it
	Stopping     Leaving = "Stopping"     // it was started here
	Stopped      Leaving = "Stopped"
)

// Opener opens clusters. All of its fields are required.
type Opener struct {
	Dock Dock
	// Getenv reads the environment.
	Getenv func(name string) string
	// Start starts a cluster of Opdock with this previous status. It ends with this process, however that ends, unless
	// it is kept or in use.
	Start func(ctx context.Context, w Which, before cluster.Status) (Running, error)
	// Leaving shows the user what happens to a cluster.
	Leaving func(what Leaving, name string)
}

var notInFileNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// fileNameOf is a cluster's address as a file can be called.
func fileNameOf(config *rest.Config) string {
	return strings.Trim(notInFileNames.ReplaceAllString(strings.TrimPrefix(config.Host, "https://"), "-"), "-")
}
