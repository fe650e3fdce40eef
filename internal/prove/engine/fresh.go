// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// A spec must lead to the same objects whether the custom resource was created with it or changed to it. So after a
// changed value was judged, a fresh cluster gets the same spec from the start, and what the operator made there is
// compared with what became of the change. Most operators agree at once, which costs one more run. Only if they do not,
// the change is made again, and both sides get more time.

// unchanged is the variant of a plan that changes nothing: the spec at the end of the scenario's steps is the one that a
// fresh cluster gets.
const unchanged = "unchanged"

// made is what an operator made of custom resources.
type made struct {
	state world.State
	// written are the objects that it wrote, as nameOf names them.
	written map[string]bool
	over    rested
}

// made returns what the operator of a run has made so far.
func (r *run) made(over rested) *made {
	m := &made{state: r.world.State(), written: map[string]bool{}, over: over}
	for _, e := range r.events(0) {
		if w := e.Request; w != nil && w.IsWrite() && !w.Refused() && w.Object != nil && w.Resource.Subresource == "" {
			m.written[nameOf(w.Object.Kind, w.Object.Namespace, w.Object.Name)] = true
		}
	}
	return m
}

// learnedMade is what the operator made undisturbed until the end of a step.
func (c *campaign) learnedMade(step int) *made {
	return &made{state: c.reference[step].state, written: c.learnedWrites(), over: c.reference[step].rested}
}

// learnedWrites are the objects that the operator writes undisturbed.
func (c *campaign) learnedWrites() map[string]bool {
	written := map[string]bool{}
	for _, s := range c.reference {
		for i := range s.writes {
			if w := &s.writes[i]; w.Subresource == "" && w.object != "" {
				written[nameOf(w.object, w.Namespace, w.Name)] = true
			}
		}
	}
	return written
}

// startOver compares the state after the change of a plan with the state after a fresh start with the same spec.
func (c *campaign) startOver(ctx context.Context, p *Plan, result *outcome) {
	changed := result.changed
	if p.Variant == unchanged && p.Step > 0 {
		changed = c.learnedMade(p.Step - 1)
	}
	if changed == nil || changed.over.busy || changed.over.backsOff {
		return
	}
	var hide *compare.Mask
	agree := func(fresh *made) bool {
		return len(c.deviates(p.Step, changed, fresh, hide)) == 0 && c.sameStatus(changed, fresh)
	}
	fresh, err := c.fresh(ctx, changed.state, agree)
	var impossible *noStartError
	switch {
	case errors.As(err, &impossible):
		if p.Variant == unchanged {
			result.skipped = err.Error()
		}
		return
	case err != nil:
		result.failed = err
		return
	}
	c.learnEffect(p, changed, fresh)
	if agree(fresh) {
		return
	}
	if p.Variant != unchanged {
		// What differs without the change as well has another cause.
		if hide, err = c.learnFresh(ctx, p.Step); errors.As(err, &impossible) {
			return
		}
		if err != nil {
			result.failed = err
			return
		}
		if agree(fresh) {
			return
		}
	}
	if err := c.changeAgain(ctx, p, fresh, hide, result); err != nil {
		result.failed = err
	}
}

// learnEffect keeps whether a value has changed anything: after a fresh start or, if the operator refuses it there, after the change. A
// property that was not set before says nothing: the value may be the one that the operator chooses by itself.
func (c *campaign) learnEffect(p *Plan, changed, fresh *made) {
	change, err := changeOf(p.Value)
	if p.Variant == unchanged || err != nil || change.Class != values.Valid || isEmpty(change.Value) {
		return
	}
	kind, _, _ := strings.Cut(p.Object, " ")
	before := c.learnedMade(p.Step - 1)
	if !slices.ContainsFunc(sortedKeys(before.state), func(key world.Key) bool { return key.String() == p.Object && change.IsSet(before.state[key].Object) }) {
		return
	}
	seen := slices.ContainsFunc([]*made{changed, fresh}, func(now *made) bool {
		return len(c.deviates(p.Step, now, before, nil)) > 0 || len(c.mask.Differences(c.statusShape(before), c.statusShape(now))) > 0
	})
	property := kind + " " + values.Path(change.Path)
	c.freshly.Lock()
	defer c.freshly.Unlock()
	if c.effects == nil {
		c.effects = map[string]bool{}
	}
	c.effects[property] = c.effects[property] || seen
}

// isEmpty reports whether a value is none: what is removed or emptied may mean the same as before.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, one := range v {
			if !isEmpty(one) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !isEmpty(one) })
	}
	return value == ""
}

// statusShape normalizes the status of the custom resources.
func (c *campaign) statusShape(m *made) compare.Shape {
	subjects := world.State{}
	for _, subject := range c.o.Subjects {
		if key, live := find(m.state, subject); live != nil {
			subjects[key] = live
		}
	}
	shape := compare.ShapeOf(subjects, nil)
	for _, fields := range shape.Objects {
		maps.DeleteFunc(fields, func(path, _ string) bool {
			return !compare.Difference{Path: path}.IsStatus() || strings.HasSuffix(path, "bservedGeneration")
		})
	}
	return shape
}

// hasEffect reports whether a property, or one below it, has changed anything.
func (c *campaign) hasEffect(property string) bool {
	for other, seen := range c.effects {
		if seen && (other == property || strings.HasPrefix(other, property+".") || strings.HasPrefix(other, property+"[")) {
			return true
		}
	}
	return false
}

// withoutEffect are the properties of which no valid value has changed anything.
func (c *campaign) withoutEffect() (properties []string) {
	c.freshly.Lock()
	defer c.freshly.Unlock()
	for property := range c.effects {
		if !c.hasEffect(property) {
			properties = append(properties, property)
		}
	}
	slices.Sort(properties)
	return properties
}

// noStartError is a spec that a fresh start cannot be compared with. It may be one that only a change leads to.
type noStartError struct{ reason string }

func (e *noStartError) Error() string { return "no fresh start to compare with: " + e.reason }

// fresh creates the custom resources of a state on a cluster that never had others.
func (c *campaign) fresh(ctx context.Context, as world.State, agree func(*made) bool) (m *made, err error) {
	r, err := c.newRun(ctx, c.checkpoints[0], true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if _, err := r.settle(ctx); err != nil {
		return nil, err
	}
	r.board.step(nil)
	if err := r.createAll(ctx, c.origins(as)); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, &noStartError{firstLine(err.Error())}
	}
	over, err := r.settle(ctx)
	var dead *deadError
	if errors.As(err, &dead) {
		return nil, &noStartError{firstLine(err.Error())}
	}
	if err != nil {
		return nil, err
	}
	if m = r.made(over); !agree(m) {
		later, err := r.settleUntil(ctx, patience, func() bool { return agree(r.made(over)) })
		if err != nil {
			return nil, err
		}
		over.add(later)
		m = r.made(over)
	}
	if over.busy || over.backsOff || len(r.exits) > 0 {
		return nil, &noStartError{"the operator does not come to rest"}
	}
	return m, nil
}

// learnFresh returns what a fresh start with the specs of the scenario changes, once for the campaign.
func (c *campaign) learnFresh(ctx context.Context, step int) (*compare.Mask, error) {
	c.freshly.Lock()
	defer c.freshly.Unlock()
	if c.freshMask != nil {
		return c.freshMask, nil
	}
	changed := c.learnedMade(step - 1)
	fresh, err := c.fresh(ctx, changed.state, func(m *made) bool { return len(c.deviates(step, changed, m, nil)) == 0 })
	if err != nil {
		return nil, err
	}
	mask := compare.NewMask()
	mask.Learn(c.madeShapes(changed, fresh))
	c.freshMask = mask
	return mask, nil
}

// changeAgain repeats a change that led elsewhere than a fresh start, and judges it.
func (c *campaign) changeAgain(ctx context.Context, p *Plan, fresh *made, hide *compare.Mask, result *outcome) (err error) {
	r, err := c.newRun(ctx, c.checkpoints[p.Step], true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if p.Variant == unchanged {
		if err := r.showOnce(); err != nil {
			return err
		}
	}
	r.family = p.Family
	if _, err := r.settle(ctx); err != nil {
		return err
	}
	r.board.step(nil)
	before := r.world.State()
	about := c.changeIn(p, before)
	since := time.Time{} // what was reported in the steps before counts
	if p.Variant != unchanged {
		d, err := feed(r, p)
		if err != nil {
			return err
		}
		since = time.Now().Add(-time.Second) // times in events are in seconds
		r.note(about.change)
		if err := d.act(ctx); err != nil {
			return err
		}
	}
	over, err := r.settleUntil(ctx, patience, func() bool {
		now := r.made(rested{})
		return len(c.deviates(p.Step, now, fresh, hide)) == 0 && c.sameStatus(now, fresh)
	})
	if err != nil {
		return err
	}
	if err := r.lens.Flush(ctx); err != nil {
		return err
	}
	now := r.made(over)
	found := c.deviates(p.Step, now, fresh, hide)
	reported, err := r.reports(ctx, now, fresh, found, since)
	if err != nil || reported || over.busy {
		return err
	}
	wrong := about.unfollowed(p.Step-1, found, c.shapeOf(before), over.failing)
	if len(found) == 0 {
		wrong = about.otherStatus(p.Step-1, c.o.Subjects, now, fresh)
	}
	wrong, excused := c.excuse(wrong, over, r.board.writes())
	if len(wrong) == 0 && p.Variant == unchanged {
		result.skipped = excused // what else a plan does was judged before
	}
	for _, o := range wrong {
		o.Family = p.Family
		r.locate(p, o)
	}
	if len(wrong) > 0 {
		result.wrong, result.story = append(result.wrong, wrong...), r.tell()
	}
	return nil
}

// origins are the objects of the scenario as they are in a state, for a cluster that does not have them.
func (c *campaign) origins(state world.State) (objects []*unstructured.Unstructured) {
	for _, other := range c.o.Others {
		if _, live := c.subjectIn(state, other); live != nil {
			objects = append(objects, original(other, live))
		}
	}
	for _, subject := range c.o.Subjects {
		if _, live := c.subjectIn(state, subject); live != nil {
			objects = append(objects, afresh(live))
		}
	}
	return objects
}

// original returns an object as the scenario applied it or, if a step has changed it, as it is.
func original(applied, live *unstructured.Unstructured) *unstructured.Unstructured {
	if includes(live.Object, applied.Object) {
		return applied.DeepCopy()
	}
	return afresh(live)
}

// includes reports whether a value has all fields of another.
func includes(all, part any) bool {
	fields, ok := part.(map[string]any)
	if !ok {
		return fmt.Sprint(all) == fmt.Sprint(part)
	}
	in, ok := all.(map[string]any)
	for name, value := range fields {
		if !ok || !includes(in[name], value) {
			return false
		}
	}
	return true
}

// allocated are fields that the cluster fills in, and that belong to objects which a fresh cluster does not have.
var allocated = [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "volumeName"}, {"spec", "nodeName"}}

// afresh returns what a user has written of an object. The operator's notes in its metadata are left out: with them, it
// would take the object for one that it knows.
func afresh(live *unstructured.Unstructured) *unstructured.Unstructured {
	object := live.DeepCopy()
	delete(object.Object, "status")
	if object.GroupVersionKind().Group == "" {
		for _, path := range allocated {
			unstructured.RemoveNestedField(object.Object, path...)
		}
	}
	metadata := map[string]any{"name": live.GetName()}
	if namespace := live.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	object.Object["metadata"] = metadata
	object.SetLabels(usersOf(live, "f:labels", live.GetLabels()))
	object.SetAnnotations(usersOf(live, "f:annotations", live.GetAnnotations()))
	return object
}

// usersOf returns the labels or annotations that the scenario wrote.
func usersOf(live *unstructured.Unstructured, field string, all map[string]string) map[string]string {
	users := map[string]string{}
	entries, _, _ := unstructured.NestedSlice(live.Object, "metadata", "managedFields")
	for _, one := range entries {
		entry, _ := one.(map[string]any)
		if entry["manager"] != manager {
			continue
		}
		own, _, _ := unstructured.NestedMap(entry, "fieldsV1", "f:metadata", field)
		for name := range own {
			if value, there := all[strings.TrimPrefix(name, "f:")]; there && name != "f:"+compare.Nudge {
				users[strings.TrimPrefix(name, "f:")] = value
			}
		}
	}
	if len(users) == 0 {
		return nil
	}
	return users
}

// deviates returns what is different after a change from a fresh start, without what the scenario ignores.
func (c *campaign) deviates(step int, changed, fresh *made, hide *compare.Mask) []compare.Difference {
	got, want := c.madeShapes(changed, fresh)
	found := c.mask.Differences(want, got)
	if hide != nil {
		left := hide.Differences(want, got)
		found = slices.DeleteFunc(found, func(d compare.Difference) bool { return !slices.Contains(left, d) })
	}
	return slices.DeleteFunc(found, func(d compare.Difference) bool {
		return isPast(d, want) || c.hidesNew(d) || c.ignores(&Observation{Family: "input", Step: step - 1, Verdict: "update", Object: d.Object, Fields: fieldsIn(d)})
	})
}

// hidesNew reports whether a field of an object that undisturbed runs do not have differs between them in others of its kind: a
// change may lead to another name.
func (c *campaign) hidesNew(d compare.Difference) bool {
	kind, _, _ := strings.Cut(d.Object, " ")
	for _, s := range c.reference {
		if _, known := s.shape.Objects[d.Object]; known {
			return false
		}
	}
	for name, paths := range c.mask.Fields {
		if strings.HasPrefix(name, kind+" ") && paths[d.Path] {
			return true
		}
	}
	return false
}

func fieldsIn(d compare.Difference) []string {
	if d.Path == "" {
		return nil
	}
	return []string{d.Path}
}

// madeShapes normalizes two states: only what the operator wrote, and of that not the status, which others write.
func (c *campaign) madeShapes(changed, fresh *made) (got, want compare.Shape) {
	written := c.learnedWrites()
	maps.Copy(written, changed.written)
	maps.Copy(written, fresh.written)
	kinds := map[string]bool{}
	for name := range written {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind] = true
	}
	got, want = c.madeShape(changed.state, written, kinds), c.madeShape(fresh.state, written, kinds)
	for _, state := range []world.State{changed.state, fresh.state} {
		for _, name := range autoscaled(state) {
			delete(got.Objects[name], "spec.replicas")
			delete(want.Objects[name], "spec.replicas")
		}
	}
	return got, want
}

// autoscaled are the workloads of autoscalers. How many replicas they have depends on how many they had.
func autoscaled(state world.State) (names []string) {
	for key, object := range state {
		if key.Kind != "HorizontalPodAutoscaler" {
			continue
		}
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "kind")
		name, _, _ := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "name")
		names = append(names, nameOf(kind, key.Namespace, name))
	}
	return names
}

func (c *campaign) madeShape(state world.State, written, kinds map[string]bool) compare.Shape {
	rest := maps.Clone(state)
	maps.DeleteFunc(rest, func(key world.Key, object *unstructured.Unstructured) bool {
		name, random := compare.Name(key, object)
		if random && !kinds[key.Kind] || !random && !written[nameOf(key.Kind, key.Namespace, key.Name)] {
			return true
		}
		return c.own[name] || c.isSubject(key.String()) || ofController(object) || isOver(key, object) || object.GetDeletionTimestamp() != nil
	})
	shape := c.shapeOf(rest)
	for name, fields := range shape.Objects {
		if fields[""] != "" { // it was there before the scenario, and does not matter here
			delete(shape.Objects, name)
		}
		maps.DeleteFunc(fields, func(path, _ string) bool { return compare.Difference{Path: path}.IsStatus() || path == "spec.nodeName" })
	}
	return shape
}

// isOver reports whether an object is a Job that has done its work: what ran before a change is not undone.
func isOver(key world.Key, object *unstructured.Unstructured) bool {
	if key.Kind != "Job" || key.Group != "batch" {
		return false
	}
	finished, _, _ := unstructured.NestedString(object.Object, "status", "completionTime")
	return finished != ""
}

// sameStatus reports whether the custom resources say the same about themselves.
func (c *campaign) sameStatus(changed, fresh *made) bool {
	return len(statusDifferences(c.o.Subjects, changed, fresh)) == 0
}

// reports tests whether a user can see that a change was not carried out, or why: by a condition that is another than
// after a fresh start, by its message, or by a warning since a time. It also does if the fresh start has not succeeded either.
func (r *run) reports(ctx context.Context, now, fresh *made, found []compare.Difference, since time.Time) (bool, error) {
	subjects := r.campaign.o.Subjects
	if isUnhealthy(subjects, fresh) && !r.campaign.isNeverHealthy() || len(found) > 0 && len(statusDifferences(subjects, now, fresh)) > 0 || saysSo(subjects, now, fresh) {
		return true, nil
	}
	var events corev1.EventList
	if err := r.objects.List(ctx, &events); err != nil {
		return false, fmt.Errorf("listing events: %w", err)
	}
	return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
		at := e.LastTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		if e.Series != nil && e.Series.LastObservedTime.After(at) {
			at = e.Series.LastObservedTime.Time
		}
		about := nameOf(e.InvolvedObject.Kind, e.InvolvedObject.Namespace, e.InvolvedObject.Name)
		return e.Type == corev1.EventTypeWarning && !at.Before(since) &&
			(r.campaign.isSubject(about) || slices.ContainsFunc(found, func(d compare.Difference) bool { return d.Object == about }))
	}), nil
}

// isNeverHealthy reports whether custom resources say that they are not as they should be undisturbed as well, for example because
// their application is not there.
func (c *campaign) isNeverHealthy() bool {
	return slices.ContainsFunc(c.reference, func(s *stage) bool { return isUnhealthy(c.o.Subjects, &made{state: s.state}) })
}

// changeIn describes the change of a plan.
func (c *campaign) changeIn(p *Plan, before world.State) *changing {
	if p.Variant == unchanged {
		return &changing{what: "the changes in the scenario", done: p.Says}
	}
	about := &changing{what: "a change of " + values.Path(p.Path), change: p.Says, done: p.Says}
	change, err := changeOf(p.Value)
	if err != nil {
		return about
	}
	for key, object := range before {
		if key.String() == p.Object {
			about.change = p.Object + ": " + change.From(object.Object)
			about.done = about.change + ". Another cluster gets the same spec from the start"
		}
	}
	return about
}
