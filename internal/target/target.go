// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target knows which cluster is meant, how to reach it and how to leave it. The cluster is one of Opdock's, which is
// started if it does not run, or that of a kubeconfig. All verbs that work on a cluster come by here.
package target

import (
	"context"
	"regexp"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/cluster"
)

// Which is how a user says which cluster is meant.
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

	// Nodes, Keep and Timeout are for a cluster that has to be started: how many nodes it gets, 0 being as many as it had,
	// whether it goes on at the end, and how long its start may take.
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
	// StateDir is where a cluster of Opdock's keeps what it needs; empty for others.
	StateDir string
	// FileName is what a file about the cluster can be called.
	FileName string

	// Config is an administrator's, and Kubeconfig returns the same as a file.
	Config     *rest.Config
	Kubeconfig func() ([]byte, error)
	// KubeconfigAs returns a kubeconfig of a service account that exists.
	KubeconfigAs func(ctx context.Context, namespace, name string) ([]byte, error)

	// Done returns a channel that is closed when the cluster ends; nil if that is unknown.
	Done func() <-chan struct{}
	// Ended says why the cluster is gone, and nil as long as it is there.
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
	Stopping     Leaving = "Stopping"     // it was started here
	Stopped      Leaving = "Stopped"
)

// Opener opens clusters. All of its fields have to be set.
type Opener struct {
	Dock Dock
	// Getenv reads the environment.
	Getenv func(name string) string
	// Start starts a cluster of Opdock's, of which this is known from before. It ends with this process, however that ends,
	// unless it is to be kept.
	Start func(ctx context.Context, w Which, before cluster.Status) (Running, error)
	// Leaving tells the user what becomes of a cluster.
	Leaving func(what Leaving, name string)
}

var notInFileNames = regexp.MustCompile(`[^a-zA-Z0-9.]+`)

// fileNameOf is a cluster's address as a file can be called.
func fileNameOf(config *rest.Config) string {
	return strings.Trim(notInFileNames.ReplaceAllString(strings.TrimPrefix(config.Host, "https://"), "-"), "-")
}
