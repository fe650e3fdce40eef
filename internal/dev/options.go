// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/why"
)

// Options say what a session works on.
type Options struct {
	Project *project.Project
	// Main is the pattern of the operator's main package.
	Main  string
	Build BuildOptions
	// Arguments are the operator's own, which win over those that it is given here.
	Arguments []string
	Env       []string
	// StateDir is a private folder for the binary, the log, the kubeconfig and certificates.
	StateDir string
	Cluster  Cluster
	// Namespace is where samples go that name none.
	Namespace string
	// Lens watches the operator from outside: what it asks the API server for, what it writes and is told, is recorded.
	Lens bool
	// NamespaceGiven says that the user has chosen it. Otherwise samples go where the operator watches.
	NamespaceGiven bool
	// Samples applies the samples from the beginning.
	Samples bool
	// Generate is generate.Run, or nil if nothing is to be generated.
	Generate func(context.Context, generate.Options) (*generate.Result, error)
	// Assets returns a directory for tests that start an API server by envtest; nil if there is none.
	Assets func(context.Context) (string, error)
	// Debugger is attached to each process of the operator, if it has a path.
	Debugger Debugger
	Screen   Screen
	// Observer is notified of each process of the operator. It may be nil.
	Observer Observer
	// Lensed is called with the stream of the lens when the lens has started. It may be nil.
	Lensed func(*lens.Stream)
	// Keys receives what the user types; nil if there is no keyboard.
	Keys <-chan string
}

// Debugger is a debugger, and where it listens.
type Debugger struct {
	Path string
	Port int
}

// Observer looks at what the operator records. It is told about each process, one after the other.
type Observer interface {
	// Begin says that a process was started, and where it serves what it records, if it records anything; the address is
	// empty if the user has told it to serve nothing.
	Begin(address string)
	// Works says that the process is known to do its work.
	Works()
	// Infer shows a reconcile that was inferred by watching the process from outside.
	Infer(record *why.Record)
	// End says that the process has ended.
	End()
}

// unobserved is the observer of a session that nobody looks at.
type unobserved struct{}

func (unobserved) Begin(string)      {}
func (unobserved) Works()            {}
func (unobserved) Infer(*why.Record) {}
func (unobserved) End()              {}

// Cluster is where the operator works.
type Cluster struct {
	// Config is an administrator's, and Kubeconfig the same as a file.
	Config     *rest.Config
	Kubeconfig []byte
	// KubeconfigAs returns a kubeconfig of a service account that exists.
	KubeconfigAs func(ctx context.Context, namespace, name string) ([]byte, error)
	// CallsBack says that its API server can call webhooks on this machine.
	CallsBack bool
	// Done is closed when the cluster ends, and nil if that is unknown.
	Done <-chan struct{}
}
