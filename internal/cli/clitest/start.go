// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"context"
	"time"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/target"
)

// Steps are the steps of a start.
var Steps = []string{"state", "etcd", "apiserver", "controllers", "nodes"}

// StartsWell is a start that goes through all its steps.
func StartsWell(f *FakeDock) func(context.Context, cluster.Options) (target.Running, error) {
	return func(_ context.Context, o cluster.Options) (target.Running, error) {
		for i, step := range Steps {
			o.Progress(cluster.Progress{Step: step, Message: step + " is up", Elapsed: time.Duration(i+1) * 100 * time.Millisecond})
		}
		return &FakeCluster{Dock: f, Name: o.Name}, nil
	}
}

// FailsWith is a start that fails.
func FailsWith(err error) func(context.Context, cluster.Options) (target.Running, error) {
	return func(context.Context, cluster.Options) (target.Running, error) { return nil, err }
}

// Hangs is a start that makes no progress until it is canceled, and then reports the message of a
// control plane.
func Hangs(ctx context.Context, _ cluster.Options) (target.Running, error) {
	<-ctx.Done()
	return nil, &cluster.StartError{Reason: cluster.ReasonInterrupted, Message: "interrupted"}
}
