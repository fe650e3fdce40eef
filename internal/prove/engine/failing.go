// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/world"
)

// An operator that keeps failing although nothing disturbs it does not get to what comes after the failure: it waits, for example, for
// an application that simulated pods do not run. What it leaves undone then says nothing about how it recovers.

// variable are parts of errors that are different each time.
var variable = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\d+`)

// plain returns an error without what is different each time.
func plain(failure string) string { return variable.ReplaceAllString(firstLine(failure), "#") }

// learnFailing keeps at which errors the operator is stuck undisturbed.
func (c *campaign) learnFailing(failing []string) {
	c.learning.Lock()
	defer c.learning.Unlock()
	for _, one := range failing {
		if _, known := c.failing[plain(one)]; !known {
			c.failing[plain(one)] = firstLine(one)
		}
	}
}

// expected returns the error at which the operator is stuck undisturbed as well; empty if it is not.
func (c *campaign) expected(failure string) string {
	c.learning.Lock()
	defer c.learning.Unlock()
	return c.failing[plain(failure)]
}

func (c *campaign) isExpected(failure string) bool { return c.expected(failure) != "" }

// failsAsUndisturbed reports whether the operator is stuck, and only at errors at which it is stuck undisturbed as well.
func (c *campaign) failsAsUndisturbed(over rested) bool { return over.failsOnlyAt(c.isExpected) }

// failsOnlyAt reports whether the operator is stuck, and only at errors that are known.
func (r *rested) failsOnlyAt(isKnown func(failure string) bool) bool {
	return len(r.failing) > 0 && !slices.ContainsFunc(r.failing, func(one string) bool { return !isKnown(one) })
}

// failsAlready is why a run does not go on where the restart that it begins with is the finding.
const failsAlready = "the operator keeps failing after a restart before this step, undisturbed as well: fix that first"

// learnRestartFailures keeps at which errors the operator is stuck after restarts at a checkpoint, which is a finding.
func (c *campaign) learnRestartFailures(checkpoint int, all []*restarted) {
	c.learning.Lock()
	defer c.learning.Unlock()
	if c.failingRestarted == nil {
		c.failingRestarted = map[int]map[string]bool{}
	}
	for _, one := range all {
		for _, failure := range one.failing {
			if c.failingRestarted[checkpoint] == nil {
				c.failingRestarted[checkpoint] = map[string]bool{}
			}
			c.failingRestarted[checkpoint][plain(failure)] = true
		}
	}
}

// failsAsRestarted reports whether the operator is stuck, and only at errors at which it is stuck after restarts.
func (c *campaign) failsAsRestarted(over rested) bool {
	return over.failsOnlyAt(func(failure string) bool {
		for _, known := range c.failingRestarted {
			if known[plain(failure)] {
				return true
			}
		}
		return false
	})
}

// failsAsRestartedAt is the same for restarts at one checkpoint. The operator may also fail as it does without them.
func (c *campaign) failsAsRestartedAt(checkpoint int, over rested) bool {
	return !c.failsAsUndisturbed(over) && over.failsOnlyAt(func(failure string) bool {
		return c.failingRestarted[checkpoint][plain(failure)] || c.isExpected(failure)
	})
}

// failures are the errors at which the operator is stuck undisturbed, for the report.
func (c *campaign) failures() []string { return slices.Sorted(maps.Values(c.failing)) }

// tooLate is why a run is not judged in which the operator would have tried again later.
const tooLate = "the operator backs off from errors, and its next attempt is later than a step may take: raise settle.bound in the scenario"

// timerTooLate is the same for one that does not call it an error.
const timerTooLate = "the operator waits with a timer that is later than a step may take: raise settle.bound in the scenario"

// excuse leaves out of what is wrong what the operator may only have left undone because it is stuck at the same error
// as undisturbed, or because its next attempt is too late to wait for, and says so. It must be a controller that writes some of that.
// What it has done is judged, and what it has passed by without doing it. The moments are the writes of the step.
func (c *campaign) excuse(wrong []*Observation, over rested, moments []seenMoment) (blamed []*Observation, excused string) {
	undoneBy := func(controllers []string) bool {
		return slices.ContainsFunc(wrong, func(o *Observation) bool { return o.isUndone() && c.mayWrite(controllers, o) })
	}
	at := slices.IndexFunc(over.failing, func(failure string) bool {
		controllers := over.failers[failure]
		return c.isExpected(failure) && (len(controllers) == 0 || slices.Contains(controllers, "") || undoneBy(controllers))
	})
	reason, failure := "", ""
	switch { // what other controllers have left undone may follow from that
	case at >= 0:
		reason = "the operator keeps failing, as it does undisturbed: " + shortened(c.expected(over.failing[at]))
		failure = plain(over.failing[at])
	case over.backsOff:
		reason = tooLate
	case undoneBy(c.lateControllers(over.timers)):
		reason = timerTooLate
	}
	for _, o := range wrong {
		switch {
		case o.Verdict == "unsettled" && (reason != "" || slices.ContainsFunc(over.failing, c.isExpected)): // as undisturbed
		case reason == "", !o.isUndone(), failure != "" && (c.precedes(o, failure) || c.skipped(o, moments)):
			blamed = append(blamed, o)
		default:
			excused = reason
		}
	}
	return blamed, excused
}

// isUndone reports whether the operator may only not have come to what is wrong yet.
func (o *Observation) isUndone() bool {
	switch o.Verdict {
	case "end-state", "update", "status", "leftovers", "deletion":
		return true
	}
	return false
}

// precedes reports whether an undisturbed reconcile writes what is wrong before it fails with this error.
func (c *campaign) precedes(o *Observation, failure string) bool {
	for _, s := range c.reference[:min(o.Step+1, len(c.reference))] {
		for _, w := range s.writes {
			if w.failure == failure && o.Object == nameOf(w.object, w.Namespace, w.Name) && w.includes(o.Fields) {
				return true
			}
		}
	}
	return false
}

// skipped reports whether the operator has not written what is wrong, although it went on to a write that comes later
// in the same reconcile undisturbed.
func (c *campaign) skipped(o *Observation, moments []seenMoment) bool {
	if o.Step >= len(c.reference) {
		return false
	}
	done := map[Moment]bool{}
	for _, m := range moments {
		done[m.Moment] = true
	}
	writes := c.reference[o.Step].writes
	for i, w := range writes {
		if w.reconcile == 0 || done[w.Moment] || o.Object != nameOf(w.object, w.Namespace, w.Name) || !w.includes(o.Fields) {
			continue
		}
		if slices.ContainsFunc(writes[i+1:], func(later write) bool { return later.reconcile == w.reconcile && done[later.Moment] }) {
			return true
		}
	}
	return false
}

// nameOf names an object as plans, observations and masks do.
func nameOf(kind, namespace, name string) string {
	return world.Key{Kind: kind, Namespace: namespace, Name: name}.String()
}

// nameOfObject is the same for an object that is known as a whole.
func nameOfObject(object *unstructured.Unstructured) string {
	return nameOf(object.GetKind(), object.GetNamespace(), object.GetName())
}

// includes reports whether a write changed one of the fields, or made an object of which no field is wrong.
func (w *write) includes(fields []string) bool {
	if len(fields) == 0 || fields[0] == "" {
		return w.Verb == "create" || w.Verb == "apply"
	}
	return slices.ContainsFunc(fields, func(wrong string) bool {
		return slices.ContainsFunc(w.fields, func(written string) bool {
			wrong, written := dotted.Replace(wrong)+".", dotted.Replace(written)+"."
			return strings.HasPrefix(wrong, written) || strings.HasPrefix(written, wrong)
		})
	})
}

// dotted writes keys in brackets like other fields.
var dotted = strings.NewReplacer("[", ".", "]", "", `"`, "")

// longestReason is how much of an error is shown.
const longestReason = 160

func shortened(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= longestReason {
		return text
	}
	return strings.ToValidUTF8(text[:longestReason], "") + "…"
}
