// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

// installing makes the runs of a campaign begin with the installation of its release, until the returned function is called.
func installing(c *campaign, definitions []*apiextensionsv1.CustomResourceDefinition) (end func()) {
	c.installs, c.watchLate = true, convert(definitions)
	return func() { c.installs, c.watchLate = false, false }
}

// takeOver installs the new release over the objects of the earlier one.
func (u *upgrade) takeOver(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) (err error) {
	defer installing(u.new, definitions)()
	r, err := u.new.newRun(ctx, u.made, u.new.watchLate)
	if err != nil {
		return u.mayNotRun("upgrade", err)
	}
	u.ran = append(u.ran, "upgrade")
	defer func() { err = errors.Join(err, r.close()) }()
	start := r.world.State() // with new defaults, and without what is pruned
	if u.new.watchLate {
		start = startOf(u.before, start, definitions)
	} else if err := r.startOperator(ctx); err != nil {
		return u.mayNotRun("upgrade", err)
	}
	over, err := r.settleFor(ctx, patience)
	if err == nil {
		over, err = r.settleMore(ctx, over, func() bool { return len(notReady("upgrade", u.before, u.own(r.world.State()))) == 0 })
	}
	if err != nil {
		return u.mayNotRun("upgrade", err)
	}
	end := r.world.State()
	writes, err := r.unasked(ctx)
	if err != nil {
		return err
	}
	u.add("upgrade", r.healthOf(0, over)...)
	t := &taking{before: u.own(start), after: u.own(end), shapeOf: u.shapeOf, mask: u.mask, writes: without(writes, u.atRest), replaced: replacedPods(start, end)}
	u.add("upgrade", t.judge()...)
	u.add("upgrade", notReady("upgrade", u.before, t.after)...)
	u.stories["upgrade"] = r.tell()
	u.taken = filepath.Join(u.old.o.StateDir, "taken.snapshot")
	if err := r.save(ctx, u.taken); err != nil {
		return err
	}
	trips, err := r.roundTrips(ctx, definitions, t.after)
	u.add("upgrade", trips...)
	if err != nil {
		return err
	}
	u.ran = append(u.ran, "deletion")
	remains, err := u.deleteAll(ctx, r, func(left world.State) bool { return len(leftBehind(t.after, left, u.remains)) == 0 })
	if err != nil {
		return u.mayNotRun("deletion", err)
	}
	u.add("deletion", leftBehind(t.after, remains, u.remains)...)
	u.stories["deletion"] = r.tell()
	return nil
}

// convert says that objects of these kinds can only be read while a webhook of the operator answers.
func convert(definitions []*apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definitions, func(one *apiextensionsv1.CustomResourceDefinition) bool {
		return one.Spec.Conversion != nil && one.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
	})
}

// startOf is the state that an operator began with, whose custom resources could not be read before it ran.
func startOf(before, readable world.State, definitions []*apiextensionsv1.CustomResourceDefinition) world.State {
	isTheirs := func(key world.Key) bool {
		return slices.ContainsFunc(definitions, func(one *apiextensionsv1.CustomResourceDefinition) bool {
			return one.Spec.Group == key.Group && one.Spec.Names.Kind == key.Kind
		})
	}
	start := world.State{}
	for key, object := range before {
		if !isTheirs(key) {
			start[key] = object
		}
	}
	for key, object := range readable {
		if isTheirs(key) || ofController(object) {
			start[key] = object
		}
	}
	return start
}

// mayNotRun creates a finding about a release that cannot be installed, does not start, or does not keep
// running.
func (u *upgrade) mayNotRun(part string, err error) error {
	var ended *dev.EndedError
	var dead *deadError
	o := &Observation{Verdict: "exit", Severity: high, Title: "The operator does not keep running after the " + part, Want: "it continues with the objects that exist"}
	switch {
	case errors.As(err, &ended):
		o.Got = ended.How + ": " + lastLine(ended.Tail)
	case errors.As(err, &dead):
		o.Got = dead.how + ": " + lastLine(dead.tail)
	case lens.IsRejected(err):
		o.Verdict, o.Title, o.Want, o.Got = "admission", "The API server refuses what the "+part+" applies", "CRDs and roles can be applied", firstLine(err.Error())
	default:
		return err
	}
	if !slices.Contains(u.ran, part) {
		u.ran = append(u.ran, part)
	}
	u.add(part, o)
	return nil
}

// deleteAll deletes the custom resources, and returns the remaining objects when everything is quiet. It waits longer until that is
// enough.
func (u *upgrade) deleteAll(ctx context.Context, r *run, enough func(left world.State) bool) (world.State, error) {
	for _, subject := range u.new.o.Earlier.Subjects {
		_, live := find(r.world.State(), subject)
		if live == nil {
			continue
		}
		if err := r.objects.Delete(ctx, live.DeepCopy(), client.PropagationPolicy("Background")); err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("deleting %s %s: %w", live.GetKind(), live.GetName(), err)
		}
	}
	r.note("the custom resources are deleted")
	over, err := r.settleFor(ctx, patience)
	if err == nil {
		_, err = r.settleMore(ctx, over, func() bool { return enough(u.own(r.world.State())) })
	}
	if err != nil {
		return nil, err
	}
	return u.own(r.world.State()), nil
}

// goBack installs the earlier release again.
func (u *upgrade) goBack(ctx context.Context) (err error) {
	definitions, err := typed(u.old.operator.Definitions())
	if err != nil {
		return err
	}
	defer installing(u.old, definitions)()
	r, err := u.old.newRun(ctx, u.taken, true)
	if err != nil {
		return u.mayNotRun("downgrade", err)
	}
	u.ran = append(u.ran, "downgrade")
	defer func() { err = errors.Join(err, r.close()) }()
	wrong := func() []*Observation {
		after := u.own(r.world.State())
		return append(notBack(u.mask.Differences(u.shapeOf(u.before), u.shapeOf(after))), notReady("downgrade", u.before, after)...)
	}
	over, err := r.settleFor(ctx, patience)
	if err == nil {
		over, err = r.settleMore(ctx, over, func() bool { return len(wrong()) == 0 })
	}
	if err != nil {
		return u.mayNotRun("downgrade", err)
	}
	u.add("downgrade", r.healthOf(0, over)...)
	u.add("downgrade", wrong()...)
	u.stories["downgrade"] = r.tell()
	return nil
}
