// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// Problems at the end of a step that need no comparison.

// distinct joins errors, and names each text once: undisturbed runs do the same, so they mostly fail in the same way.
func distinct(all []error) error {
	said := map[string]bool{}
	var different []error
	for _, err := range all {
		if err != nil && !said[err.Error()] {
			said[err.Error()] = true
			different = append(different, err)
		}
	}
	if len(different) == 1 {
		return different[0]
	}
	return errors.Join(different...)
}

// compared joins what two undisturbed runs show, and marks what only one of them shows.
func compared(a, b []*Observation) []*Observation {
	causes := func(all []*Observation) map[string]bool {
		known := map[string]bool{}
		for _, o := range all {
			known[o.cause()] = true
		}
		return known
	}
	inA, inB := causes(a), causes(b)
	for _, o := range a {
		o.once = !inB[o.cause()]
	}
	for _, o := range b {
		if o.once = !inA[o.cause()]; o.once {
			a = append(a, o)
		}
	}
	return a
}

// isRestless reports whether an operator did not come to rest. Then nothing can be compared with that run, so it matters even if it
// was only one.
func (o *Observation) isRestless() bool { return o.Verdict == "loop" || o.Verdict == "unsettled" }

// learnHealth keeps which rights the operator lacks undisturbed, and that it reconciles without a pause: that is one finding, and not
// one of each family as well.
func (c *campaign) learnHealth(wrong []*Observation) {
	for _, o := range wrong {
		if o.Verdict == "refused-rights" {
			c.denied[o.Title] = true
		}
		c.spins = c.spins || o.Title == withoutPause && !o.once // else it is only known to be flaky
	}
}

// learnOwn keeps what the operator makes for itself when it is started, such as a lock. How often depends on how often it is started.
func (c *campaign) learnOwn(started world.State) {
	for key, object := range started {
		if _, was := c.before[key]; !was {
			name, _ := compare.Name(key, object)
			c.own[name] = true
		}
	}
}

// unseenChanges returns custom resources whose status has not observed the last change,
// although the operator is at rest.
func (c *campaign) unseenChanges(step int, s *stage) (wrong []*Observation) {
	for _, subject := range c.o.Subjects {
		key, live := find(s.state, subject)
		if live == nil || !live.GetDeletionTimestamp().IsZero() {
			continue
		}
		observed, found, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
		if err != nil || !found || observed >= live.GetGeneration() {
			continue
		}
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "status", Severity: medium, Object: key.String(), Fields: []string{"status.observedGeneration"},
			Title: "The status of a " + key.Kind + " has not observed the last change, although the operator is at rest",
			Want:  fmt.Sprintf("status.observedGeneration is %d", live.GetGeneration()), Got: fmt.Sprintf("status.observedGeneration is %d", observed),
		})
	}
	return wrong
}

// strangers are objects that the scenario brought, and that the operator deletes although they belong to no custom resource.
func (c *campaign) strangers(step int, s *stage) (wrong []*Observation) {
	for i := range s.writes {
		w := &s.writes[i]
		if w.Verb != "delete" {
			continue
		}
		for _, other := range c.o.Others {
			resource, _ := meta.UnsafeGuessKindToResource(other.GroupVersionKind())
			if other.GetName() != w.Name || other.GetNamespace() != w.Namespace || resource.Group != w.Group || resource.Resource != w.Resource {
				continue
			}
			key := world.Key{Kind: other.GetKind(), Namespace: other.GetNamespace(), Name: other.GetName()}
			wrong = append(wrong, &Observation{
				Step: step, Verdict: "foreign", Severity: high, Object: key.String(), Title: "The operator deletes a " + key.Kind + " that does not belong to it",
				Want: "it stays", Got: w.String(),
			})
		}
	}
	return wrong
}
