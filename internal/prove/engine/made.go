// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// made is what an operator made of custom resources.
type made struct {
	state world.State
	// written are the objects that it wrote, as nameOf names them.
	written map[string]bool
	over    rested
	// warnings are the warnings after a fresh start.
	warnings map[string]bool
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

// deviates returns what is different after the change of a plan from a fresh start, without what the scenario ignores.
func (c *campaign) deviates(p *Plan, changed, fresh *made, hide *compare.Mask) []compare.Difference {
	got, want := c.madeShapes(changed, fresh, textsOf(p)...)
	found := slices.DeleteFunc(c.mask.Differences(want, got), isNote)
	if hide != nil {
		left := hide.Differences(want, got)
		found = slices.DeleteFunc(found, func(d compare.Difference) bool { return !slices.Contains(left, d) })
	}
	found = c.withoutSuccessors(found, want, true)
	setting := c.settingOf(p)
	scaled := append(autoscaled(changed.state), autoscaled(fresh.state)...)
	return slices.DeleteFunc(found, func(d compare.Difference) bool {
		return isPast(d, want) && !setting.lags(d.Got, d.Want) || d.Path == "spec.replicas" && slices.Contains(scaled, d.Object) || c.hidesNew(d) || c.ignores(&Observation{Family: "input", Step: p.Step - 1, Verdict: "update", Object: d.Object, Fields: fieldsIn(d)})
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

// textsOf are the addresses and times that a plan sets.
func textsOf(p *Plan) []string {
	change, err := changeOf(p.Value)
	if p.Family != "input" || err != nil {
		return nil
	}
	return compare.Texts(change.Value)
}

// madeShapes normalizes two states: only what the operator wrote, and of that not the status, which others write.
func (c *campaign) madeShapes(changed, fresh *made, known ...string) (got, want compare.Shape) {
	written := c.learnedWrites()
	maps.Copy(written, changed.written)
	maps.Copy(written, fresh.written)
	kinds := map[string]bool{}
	for name := range written {
		kind, _, _ := strings.Cut(name, " ")
		kinds[kind] = true
	}
	return c.madeShape(changed.state, written, kinds, known), c.madeShape(fresh.state, written, kinds, known)
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

func (c *campaign) madeShape(state world.State, written, kinds map[string]bool, known []string) compare.Shape {
	rest := maps.Clone(state)
	maps.DeleteFunc(rest, func(key world.Key, object *unstructured.Unstructured) bool {
		name, random := compare.Name(key, object)
		if random && !kinds[key.Kind] || !random && !written[nameOf(key.Kind, key.Namespace, key.Name)] {
			return true
		}
		return c.own[name] || c.isSubject(key.String()) || ofController(object) || isOver(key, object) || object.GetDeletionTimestamp() != nil
	})
	shape := c.shapeOf(rest, known...)
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

// statusDeviates returns what the custom resources say about themselves after a change, and not after a fresh start. A condition that
// is hidden does not hide others.
func (c *campaign) statusDeviates(changed, fresh *made, hide *compare.Mask) []compare.Difference {
	return slices.DeleteFunc(statusDifferences(c.o.Subjects, changed, fresh), func(d compare.Difference) bool {
		return c.mask.Fields[d.Object][d.Path] || hide != nil && hide.Fields[d.Object][d.Path]
	})
}

// agree reports whether a change led to what a fresh start leads to.
func (c *campaign) agree(p *Plan, changed, fresh *made, hide *compare.Mask) bool {
	return len(c.deviates(p, changed, fresh, hide)) == 0 && len(c.statusDeviates(changed, fresh, hide)) == 0
}
