// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"strings"

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
		field, observed, behind := behindOf(live)
		if !behind {
			continue
		}
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "status", Severity: medium, Object: key.String(), Fields: []string{field},
			Title: "The status of a " + key.Kind + " has not observed the last change, although the operator is at rest",
			Want:  fmt.Sprintf("%s is %d", field, live.GetGeneration()), Got: fmt.Sprintf("%s is %d", field, observed),
		})
	}
	return wrong
}

// behindOf returns the first field of a status that says which generation it is about, if that is not the current one. The status as a
// whole may say so, and its Ready condition. Other conditions may be about something that no change concerns.
func behindOf(live *unstructured.Unstructured) (field string, observed int64, behind bool) {
	observed, known, err := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if err == nil && known && observed < live.GetGeneration() {
		return "status.observedGeneration", observed, true
	}
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		kind, _ := condition["type"].(string)
		observed, known := condition["observedGeneration"].(int64)
		if strings.EqualFold(kind, "Ready") && known && observed < live.GetGeneration() {
			return "status.conditions[" + kind + "].observedGeneration", observed, true
		}
	}
	return "", 0, false
}

// strangers are objects that the scenario brought, and that the operator deletes although they belong to no custom resource.
func (c *campaign) strangers(step int, s *stage) (wrong []*Observation) {
	for i := range s.writes {
		w := &s.writes[i]
		if w.Verb != "delete" && w.Verb != "deletecollection" {
			continue
		}
		for _, other := range c.o.Others {
			resource, _ := meta.UnsafeGuessKindToResource(other.GroupVersionKind())
			if other.GetNamespace() != w.Namespace || resource.Group != w.Group || resource.Resource != w.Resource {
				continue
			}
			key := world.Key{Kind: other.GetKind(), Namespace: other.GetNamespace(), Name: other.GetName()}
			isGone := s.find(other) == nil && s.counts[key.String()].deleted[1] > 0 // and was there in this step
			if w.Verb == "delete" && other.GetName() != w.Name || w.Verb == "deletecollection" && (!isGone || c.o.Steps[step].Deletes || c.o.Steps[step].Ends) {
				continue
			}
			wrong = append(wrong, &Observation{
				Step: step, Verdict: "foreign", Severity: high, Object: key.String(), Title: "The operator deletes a " + key.Kind + " that does not belong to it",
				Want: "it stays", Got: w.String(),
			})
		}
	}
	return wrong
}
