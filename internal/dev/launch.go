// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"slices"

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
	if err := started.beginWithKinds(ctx, at.Line); err != nil {
		started.Stop()
		return nil, err
	}
	return started, nil
}

// beginWithKinds starts the process, and again with what it was found to lack before it ended, or instead of serving its webhooks.
func (o *Started) beginWithKinds(ctx context.Context, line func(string)) error {
	for {
		err := o.begin(ctx, line)
		if err == nil || o.process == nil || !o.supply(ctx) {
			return err
		}
		o.Stop()
	}
}

// Lacks receives something when the log of the operator reports another kind that the cluster does not have.
func (o *Started) Lacks() <-chan struct{} { return o.process.ready.lacks }

// supply provides what the operator lacks, as a session of opdock dev does: a configuration as in a pod, or the CRDs of kinds. It
// returns false if there is nothing to provide.
func (o *Started) supply(ctx context.Context) bool {
	if o.session.becomePod() {
		o.operator.pod.Store(true)
		return true
	}
	return o.session.installMissing(ctx, o.process.ready.missing())
}

// Complete supplies the operator with what it lacks, and starts it again: it looks for a kind only now and then, or has ended. Complete
// returns false if there is nothing to supply.
func (o *Started) Complete(ctx context.Context) (bool, error) {
	if !o.supply(ctx) {
		return false, ctx.Err()
	}
	o.Stop()
	return true, o.beginWithKinds(ctx, o.line)
}

// Lacking returns the kinds that the operator lacks, for people, and Idle the controllers whose workers do not run, both by its log.
func (o *Started) Lacking() (kinds []string) {
	for _, one := range o.process.ready.missing() {
		kinds = append(kinds, one.String())
	}
	return kinds
}

// Idle returns the controllers that have not started, by the log of the operator.
func (o *Started) Idle() []string { return o.process.ready.idle() }

// Stop stops the operator gracefully, and returns when it has ended.
func (o *Started) Stop() {
	if o.process != nil {
		o.process.stop(stopGrace)
	}
}

// Waits returns an error if a controller has not started and the operator lacks a kind, by its log.
func (o *Started) Waits() error {
	if len(o.process.ready.missing()) == 0 || len(o.Idle()) == 0 {
		return nil
	}
	return o.lacking()
}

// Need makes Install install the CRDs of these kinds as well, if the project or the modules that it imports have them. It returns
// false if none of them is new.
func (op *Operator) Need(ctx context.Context, kinds []project.Wanted) (found bool) {
	for _, one := range kinds {
		if slices.Contains(op.needed, one) {
			continue
		}
		if definitions := op.options.Project.DefinitionsOf(ctx, one, op.options.Main, op.options.Env); len(definitions) > 0 {
			op.needed, found = append(op.needed, one), true
		}
	}
	return found
}
