// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"

	"github.com/opdock/opdock/internal/project"
)

// SetIdentity gives the operator another account or other rights than the manifests do. It is called before Install.
func (op *Operator) SetIdentity(identity *project.Identity) { op.manifests.identity = identity }

// Launch starts the operator, and does not wait until it does its work: one that lacks rights may never be ready.
func (op *Operator) Launch(ctx context.Context, at Place) (*Started, error) {
	started, err := op.place(ctx, at)
	if err != nil {
		return nil, err
	}
	if err := started.begin(ctx, at.Line); err != nil {
		started.Stop()
		return nil, err
	}
	return started, nil
}

// Stop stops the operator gracefully, and returns when it has ended.
func (o *Started) Stop() {
	if o.process != nil {
		o.process.stop(stopGrace)
	}
}
