// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// A value that is valid and wrong must be refused at admission or reported. An operator is only blamed if nothing in the status of its
// custom resource is different from before, and no event warns: whatever it says may be its way to report.

// misuse is a wrong value of one custom resource.
type misuse struct {
	run    *run
	object string // the custom resource
	step   int
	value  any
	// before is the state before the change, since when the change was made, and events are those of the lens after it.
	before world.State
	since  time.Time
	events func() []*lens.Event
	// refusedBefore are writes that were refused before the change as well: they have another cause.
	refusedBefore map[Moment]string
}

// unreported returns the custom resource if it says that it is ready, as before, although the wrong value breaks something.
func (m *misuse) unreported(ctx context.Context) ([]*Observation, error) {
	state := m.run.world.State()
	live, then := named(state, m.object), named(m.before, m.object)
	if live == nil || then == nil || !isSettledReady(live) || !m.saysNothingNew(live, then) {
		return nil, nil
	}
	why, what := m.broken(state, live), "a wrong value breaks its workload"
	if why == "" {
		why, what = m.refused(live), "the API server refuses what the operator makes of a wrong value"
	}
	if why == "" {
		return nil, nil
	}
	if warned, err := m.run.warnedAbout(ctx, live, m.since); err != nil || warned {
		return nil, err
	}
	field, claim := claimOf(live)
	return []*Observation{{
		Step: m.step, Verdict: "status", Severity: medium, Object: m.object, Title: aKind(live.GetKind()) + " reports that it is ready although " + what,
		Fields: []string{cmp.Or(field, "status.conditions")}, Want: "the value is refused at admission or reported in the status, because " + why, Got: cmp.Or(claim, "Ready") + ", as before the change",
	}}, nil
}

// warnedAbout reports whether the operator has sent a Warning event about an object since a time.
func (r *run) warnedAbout(ctx context.Context, live *unstructured.Unstructured, since time.Time) (bool, error) {
	var events corev1.EventList
	if err := r.objects.List(ctx, &events, client.InNamespace(live.GetNamespace())); err != nil {
		return false, fmt.Errorf("listing events: %w", err)
	}
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		return nameOfObject(live) == nameOf(e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name) && isReport(&e, since)
	}), nil
}

// named finds an object by its name as plans have it.
func named(state world.State, name string) *unstructured.Unstructured {
	for key, object := range state {
		if key.String() == name {
			return object
		}
	}
	return nil
}

// saysNothingNew reports whether a status is as it was before the change. That it repeats the value is no report.
func (m *misuse) saysNothingNew(live, then *unstructured.Unstructured) bool {
	c := m.run.campaign
	status := func(object *unstructured.Unstructured) *made {
		return &made{state: world.State{{Group: object.GroupVersionKind().Group, Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()}: object}}
	}
	text := fmt.Sprint(m.value)
	for _, d := range c.mask.Differences(c.statusShape(status(then), []string{text}), c.statusShape(status(live), []string{text})) {
		if text == "" || d.Got != text {
			return false
		}
	}
	return true
}

// broken says which workload of a custom resource is broken now, and was not before; empty if none is.
func (m *misuse) broken(state world.State, live *unstructured.Unstructured) string {
	was := brokenIn(m.before)
	found := brokenIn(state)
	for _, key := range sortedKeys(state) {
		object := state[key]
		why, is := found[object.GetUID()]
		if _, before := was[object.GetUID()]; is && !before && isOwnedBy(object, live) {
			return why
		}
	}
	return ""
}

// refused says which write for a custom resource the API server does not accept now, unless it was the same before; empty if there is none.
func (m *misuse) refused(live *unstructured.Unstructured) string {
	var all []string
	for what, why := range refusedFor(live, m.run.board.answers(), m.events()) {
		if plain(m.refusedBefore[what]) != plain(why) {
			all = append(all, why)
		}
	}
	slices.Sort(all)
	return strings.Join(all[:min(len(all), 1)], "")
}

// refusedFor returns the writes for a custom resource that the API server did not accept, and why. If a later one to the same object
// succeeded, the operator has found another way.
func refusedFor(live *unstructured.Unstructured, answers []seenMoment, events []*lens.Event) map[Moment]string {
	requests, theirs := map[uint64]*lens.Request{}, map[uint64]bool{}
	for _, e := range events {
		switch {
		case e.Request != nil:
			requests[e.Request.ID] = e.Request
		case e.Reconcile != nil && e.Reconcile.Name == live.GetName() && e.Reconcile.Namespace == live.GetNamespace():
			theirs[e.Reconcile.ID] = true
		}
	}
	last := map[Moment]string{}
	for _, seen := range answers {
		request := requests[seen.id]
		if request == nil || request.DryRun || request.Reconcile != 0 && !theirs[request.Reconcile] {
			continue
		}
		what := seen.Moment
		what.Nth, what.Verb = 0, ""
		switch {
		case seen.status < http.StatusBadRequest:
			delete(last, what)
		case seen.status == http.StatusBadRequest || seen.status == http.StatusUnprocessableEntity:
			last[what] = seen.Verb + " " + seen.Resource + " is refused: " + shortened(firstLine(request.Message))
		}
	}
	return last
}

// watchMisuse looks at what a custom resource says while it has a wrong value. Simulated nodes pull any image, so pods with one that
// does not exist are marked as failed. They keep failing after the change is reverted, so an operator that waits for them to become
// ready never recovers. The exceptions are pods that get another image, and pods of a Job, whose template is immutable.
func (r *run) watchMisuse(p *Plan, change values.Change, d *disturbance) {
	last := r.lens.Stream().Last()
	m := &misuse{
		run: r, object: p.Object, step: p.Step - 1, value: change.Value, before: r.world.State(), since: time.Now().Add(-time.Second), // times in events are in seconds
		events: func() []*lens.Event { return r.events(last) },
	}
	if then := named(m.before, m.object); then != nil {
		m.refusedBefore = refusedFor(then, r.board.answers(), r.events(0))
	}
	d.meanwhile = m.unreported
	image := change.MissingImage()
	if image == "" || len(r.pods()) == 0 {
		return
	}
	act, heal := d.act, d.heal
	d.act = func(ctx context.Context) error {
		if err := r.beginPullErrors(ctx, image); err != nil {
			return err
		}
		return act(ctx)
	}
	d.heal = func(ctx context.Context) error {
		if err := heal(ctx); err != nil {
			return err
		}
		return r.endPullErrors(ctx, image, func(pod *unstructured.Unstructured) bool {
			owner := metav1.GetControllerOf(pod)
			return owner != nil && owner.Kind == "Job" || !strings.Contains(fmt.Sprint(pod.Object["spec"]), image)
		})
	}
}
