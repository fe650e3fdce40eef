// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// olderList is the variant in which an operator is restarted with a list from before the step. That
// is valid only for clients that accept a list of any age; others get the current state when they
// start.
//
// olderDeletion shows one in which custom resources are being deleted that were created again in the meantime, and olderChild one in
// which other objects are that have come back under the same name since.
const (
	olderList     = "older-list"
	olderDeletion = "older-deletion"
	olderChild    = "older-child"
)

// takesAnyAge reports whether a list request accepts a state that is not the latest.
func takesAnyAge(r *lens.Request) bool {
	q := r.Query
	return r.Verb == "list" && q != nil && q.ResourceVersion == "0" && (q.Match == "" || q.Match == "NotOlderThan") && !q.Continue
}

// anyAgeIn returns which resources the operator lists at any age.
func anyAgeIn(events []*lens.Event) map[lens.Resource]bool {
	found := map[lens.Resource]bool{}
	for _, e := range events {
		if e.Request != nil && takesAnyAge(e.Request) {
			found[lens.Resource{Group: e.Request.Resource.Group, Resource: e.Request.Resource.Resource}] = true
		}
	}
	return found
}

// takesOlder reports whether the operator takes a list of a resource of any age, when it starts or later.
func (c *campaign) takesOlder(resource lens.Resource) bool {
	return c.anyAge[resource] || slices.ContainsFunc(c.reference, func(s *stage) bool { return s.anyAge[resource] })
}

func olderPlans(c *campaign) (plans []*Plan) {
	subjects := c.subjectResources()
	for step, s := range c.reference {
		for _, resource := range s.delivered {
			if !c.takesOlder(resource) {
				continue
			}
			rank := 1 + s.viewRank(resource)
			if subjects[resource] && s.beforeDelete[resource] {
				rank = 0 // with the spec from before, the operator may delete once more
			}
			plans = append(plans, &Plan{
				Family: "stale", Variant: olderList, Step: step, Resource: &resource, rank: rank,
				Says: fmt.Sprintf("The operator is restarted after the step, and the list of %s that it gets is from before the step; then the watch catches up", resource.Resource),
			})
		}
		if step > 0 {
			plans = append(plans, deletionPlans(c, step)...)
		}
		plans = append(plans, childPlans(c, step, subjects)...)
	}
	return plans
}

// childPlans are for objects that were being deleted before they came back in a step, such as pods after a workload was scaled down
// and up.
func childPlans(c *campaign, step int, subjects map[lens.Resource]bool) (plans []*Plan) {
	for _, resource := range c.reference[step].delivered {
		if subjects[resource] || !c.takesOlder(resource) || c.lastGone(step, resource) == "" {
			continue
		}
		plans = append(plans, &Plan{
			Family: "stale", Variant: olderChild, Step: step, Resource: &resource,
			Says: fmt.Sprintf("The operator is restarted after the step, and in the list of %s that it gets some are being deleted that have come back since; then the watch catches up", resource.Resource),
		})
	}
	return plans
}

// lastGone is the last version in which an object of a resource was being deleted that has come back in a step; empty if there is none.
func (c *campaign) lastGone(step int, resource lens.Resource) string {
	for i := step - 1; i >= 0; i-- {
		for _, gone := range slices.Backward(c.reference[i].terminating) {
			_, before := c.reference[step-1].state[gone.key]
			_, after := c.reference[step].state[gone.key]
			if after && !before && gone.key.Group == resource.Group && gone.key.Resource == resource.Resource {
				return gone.version
			}
		}
	}
	return ""
}

// deletionPlans are for custom resources that a step deletes, and that wait for a finalizer before they are gone.
func deletionPlans(c *campaign, step int) (plans []*Plan) {
	planned := map[lens.Resource]bool{}
	for _, subject := range c.o.Subjects {
		key, before := find(c.reference[step-1].state, subject)
		_, after := find(c.reference[step].state, subject)
		resource := lens.Resource{Group: key.Group, Resource: key.Resource}
		if before == nil || after != nil || len(before.GetFinalizers()) == 0 || !c.takesOlder(resource) || planned[resource] {
			continue
		}
		planned[resource] = true
		plans = append(plans, &Plan{
			Family: "stale", Variant: olderDeletion, Step: step, Resource: &resource,
			Says: fmt.Sprintf("The custom resources are deleted and created again. The operator is restarted, and in the list of %s that it gets the deleted ones are being deleted; then the watch catches up", resource.Resource),
		})
	}
	return plans
}

// older answers lists of one resource as they were, and holds the watches that continue from there.
type older struct {
	gate *gate
	says string // what is shown

	mutex sync.Mutex
	asOf  string // empty as long as everything is current
	shown bool   // an older list
	end   func() // lets the operator see the latest state
}

func (o *older) list(r *run) func(context.Context, *lens.Call) lens.Verdict {
	return func(_ context.Context, call *lens.Call) lens.Verdict {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if o.asOf == "" || !o.gate.isClosed() || !o.gate.is(call.Request.Resource) || !takesAnyAge(&call.Request) {
			return lens.Verdict{}
		}
		if !o.shown {
			o.shown = true
			time.AfterFunc(outdated, o.end)
		}
		r.board.hit()
		return lens.Verdict{AsOf: o.asOf, Say: o.says}
	}
}

func (o *older) holds() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.shown && o.gate.isClosed()
}

// outdated is how long an older state lasts at most. A real API server catches up soon as well; and an operator may create, as long
// as that lasts, what the garbage collector deletes again and again.
const outdated = 5 * time.Second

func newOlder(resource lens.Resource, says string) *older {
	return &older{gate: newGate(resource), says: says}
}

func (o *older) faults(r *run) *faults {
	held := o.gate.deliver(r)
	return &faults{any: o.list(r), holds: o.holds, deliver: func(ctx context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict {
		if !o.holds() {
			return lens.Verdict{}
		}
		return held(ctx, watch, frame)
	}}
}

// restart kills the operator, and shows it a resource as of a version when it starts again. It calls end when that has lasted long
// enough.
func (o *older) restart(ctx context.Context, r *run, asOf string, end func()) error {
	o.mutex.Lock()
	o.asOf, o.end = asOf, end
	o.mutex.Unlock()
	r.note("the operator is killed")
	r.kill() // settling restarts it
	_, err := r.settleFor(ctx, patience)
	return err
}

func restartOlder(r *run, p *Plan) *disturbance {
	o := newOlder(*p.Resource, "answered from before the step")
	if p.Variant == olderChild {
		o.says = "answered from when they were being deleted"
	}
	// The operator may delete something because of an older state, and restore it when it receives the latest state.
	end := sync.OnceValue(func() []*Observation {
		wrong := r.deletions(p.Step)
		o.gate.release()
		return wrong
	})
	return &disturbance{
		mustHit: true, afterStep: true, faults: o.faults(r),
		act: func(ctx context.Context) error {
			asOf, err := r.olderVersion(ctx, p)
			if err != nil {
				return err
			}
			if err := r.do(ctx, p.Step); err != nil {
				return err
			}
			if _, err := r.settle(ctx); err != nil {
				return err
			}
			return o.restart(ctx, r, asOf, func() { end() })
		},
		broken: func(rested) []*Observation { return end() },
		heal:   func(context.Context) error { return nil }, // judged when it has caught up
	}
}

// olderVersion is the version of what a restarted operator is shown.
func (r *run) olderVersion(ctx context.Context, p *Plan) (string, error) {
	if p.Variant == olderChild {
		version := r.campaign.lastGone(p.Step, *p.Resource) // a copy of a cluster keeps the earlier resource versions
		if version == "" {
			return "", &notThereError{"deletion of " + p.Resource.Resource + " that come back in the step"}
		}
		return version, nil
	}
	var before corev1.NamespaceList
	if err := r.objects.List(ctx, &before, client.Limit(1)); err != nil {
		return "", fmt.Errorf("reading the current resource version: %w", err)
	}
	return before.ResourceVersion, nil
}

// restartDeleted does a step that deletes custom resources, creates them again, and shows the operator the deletion once more. What it
// does then is compared with the state just before, and after that the step is done again.
func restartDeleted(r *run, p *Plan) *disturbance {
	o := newOlder(*p.Resource, "answered from when they were being deleted")
	end := sync.OnceValue(func() []*Observation {
		wrong := r.deletionsBut(p.Step-1, nil) // nothing is to be done after the restart
		o.gate.release()
		return wrong
	})
	var wrong []*Observation
	f := o.faults(r)
	return &disturbance{
		mustHit: true, afterStep: true, faults: f,
		act: func(ctx context.Context) error {
			asOf, err := r.deleteAndRecreate(ctx, p)
			if err != nil {
				return err
			}
			want, err := r.recreated(ctx, p.Step-1)
			if err != nil {
				return err
			}
			r.board.step(f) // what is deleted from now on counts
			if err := o.restart(ctx, r, asOf, func() { end() }); err != nil {
				return err
			}
			wrong = end()
			found, excused, err := r.changedSince(ctx, p, want)
			if wrong = append(wrong, found...); len(wrong) == 0 && excused != "" {
				return &unjudgedError{excused}
			}
			return err
		},
		broken: func(rested) []*Observation { return wrong },
		heal:   func(ctx context.Context) error { return r.do(ctx, p.Step) },
	}
}

// deleteAndRecreate does a step, and creates what it deletes again. It returns a version of the time in between, when a custom
// resource was being deleted.
func (r *run) deleteAndRecreate(ctx context.Context, p *Plan) (asOf string, err error) {
	before, err := r.scene(ctx)
	if err != nil {
		return "", err
	}
	objects := r.campaign.origins(before)
	changes, _ := r.world.Changes(0)
	if err := r.do(ctx, p.Step); err != nil {
		return "", err
	}
	if _, err := r.settle(ctx); err != nil {
		return "", err
	}
	_, since := r.world.Changes(changes)
	if asOf = terminating(since, *p.Resource); asOf == "" {
		return "", &notThereError{"deletion of " + p.Resource.Resource + " that takes time"}
	}
	state, err := r.scene(ctx)
	if err != nil {
		return "", err
	}
	missing := slices.DeleteFunc(objects, func(one *unstructured.Unstructured) bool {
		_, live := find(state, one)
		return live != nil
	})
	return asOf, r.createAll(ctx, missing)
}

// recreated waits until objects that were created again are as undisturbed, and returns them for comparison. They may differ
// for good, because they had the specs of a later step from the start. Then the operator must at least have finished, or be stuck where
// it is undisturbed as well: it gets no further, and what it deletes after the restart is wrong all the same.
func (r *run) recreated(ctx context.Context, step int) (compare.Shape, error) {
	agrees := func() bool { return r.agrees(step, -1) }
	over, err := r.settleUntil(ctx, agrees)
	if err != nil {
		return compare.Shape{}, err
	}
	stuck := over.stuck && !r.campaign.failsAsUndisturbed(over)
	if !agrees() && (over.busy || stuck || over.backsOff || over.timer || len(over.unfinished) > 0) {
		return compare.Shape{}, &unjudgedError{"the operator does not finish the custom resources that are created again"}
	}
	return r.shape(), nil
}

// changedSince returns what the operator has changed since a state in which it had finished, and why that does not count.
func (r *run) changedSince(ctx context.Context, p *Plan, want compare.Shape) (wrong []*Observation, excused string, err error) {
	c, step := r.campaign, p.Step-1
	differ := func() []compare.Difference { return c.mask.Differences(want, r.shape()) }
	over, err := r.settleUntil(ctx, func() bool { return len(c.withoutIgnored(p.Family, step, differ())) == 0 })
	if err != nil {
		return nil, "", err
	}
	wrong = c.relevant(p.Family, c.differences(step, c.withoutIgnoredFields(p.Family, step, differ())))
	wrong, excused = c.excuse(wrong, over, r.board.writes())
	return wrong, excused, nil
}

// terminatingVersion is one in which an object was being deleted.
type terminatingVersion struct {
	key     world.Key
	version string
}

// terminatingIn are the versions in which objects were being deleted, oldest first.
func terminatingIn(changes []world.Change) (versions []terminatingVersion) {
	for i := range changes {
		if changes[i].Type == "MODIFIED" && changes[i].Object.GetDeletionTimestamp() != nil {
			versions = append(versions, terminatingVersion{changes[i].Key, changes[i].Object.GetResourceVersion()})
		}
	}
	return versions
}

// terminating is a version in which an object of a resource was being deleted; empty if there was none.
func terminating(since []world.Change, resource lens.Resource) string {
	for _, one := range terminatingIn(since) {
		if one.key.Group == resource.Group && one.key.Resource == resource.Resource {
			return one.version
		}
	}
	return ""
}
