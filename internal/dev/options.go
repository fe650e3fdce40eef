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

// Options configures a session.
type Options struct {
	Project *project.Project
	// Main is the pattern of the operator's main package.
	Main  string
	Build BuildOptions
	// Arguments are the user's arguments for the operator. They take precedence.
	Arguments []string
	Env       []string
	// StateDir is a private folder for the binary, the log, the kubeconfig and certificates.
	StateDir string
	// Claim is the claim on StateDir.
	Claim   *Claim
	Cluster Cluster
	// Namespace is where samples go that name none.
	Namespace string
	// Lens records the operator's requests and watch events with a local proxy.
	Lens bool
	// NamespaceGiven means that the user has chosen it. Otherwise samples go to a namespace that the operator watches.
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
	// Keys receives key presses; nil if there is no keyboard.
	Keys <-chan string
}

// Debugger is a debugger, and where it listens.
type Debugger struct {
	Path string
	Port int
}

// Observer follows the records of the operator. It is notified of each process, one after the
// other.
type Observer interface {
	// Begin is called when a process was started, with the address of its records; the address is empty if the user
	// has turned that off.
	Begin(address string)
	// Works is called when the process is known to work.
	Works()
	// Infer shows a reconcile that was inferred by watching the process from outside.
	Infer(record *why.Record)
	// End is called when the process has ended.
	End()
}

// unobserved is an observer that ignores everything.
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
	// CallsBack means that its API server can call webhooks on this machine.
	CallsBack bool
	// Kubectl is the command that runs kubectl on the cluster; empty if it is kubectl itself.
	Kubectl string
	// Done is closed when the cluster ends, and nil if that is unknown.
	Done <-chan struct{}
}
