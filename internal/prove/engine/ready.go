// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
)

// What custom resources say about themselves. Many have a condition Ready or Available. Others only have a phase.

// phaseFields are where a status has a phase.
var phaseFields = []string{"phase", "state"}

// readyPhases are those of a custom resource that has all that it needs. Running may only be the phase of a pod, or of a job at work.
var readyPhases = []string{"ready", "healthy", "available", "online"}

// unfinishedPhase matches the phase of a custom resource that is not what it should be. Of most verbs, only the form
// for what is going on says so: Created or Scaled may be the last phase.
var unfinishedPhase = regexp.MustCompile(`(?i)^(` +
	`(creat|initiali[sz]|provision|progress|updat|upgrad|deploy|install)ing|` +
	`(scal|reconcil|start|configur|bootstrapp|delet|terminat)ing|` +
	`pending|wait|init\b|in ?progress|fail|error|degraded|unhealthy|not ?ready|unknown)`)

// readyConditions are what conditions of custom resources that have neither Ready nor Available call the same, or that all their
// pods are ready.
var readyConditions = []string{"ClusterReady", "PodsReady", "AllPodsReady", "ReplicasReady", "AllReplicasReady"}

// otherReadyCondition returns the first of these that a custom resource without Ready and Available has, and that is true; empty if there is none.
func otherReadyCondition(object *unstructured.Unstructured) string {
	if conditionOf(object, "Ready") != "" || conditionOf(object, "Available") != "" {
		return ""
	}
	at := slices.IndexFunc(readyConditions, func(kind string) bool { return conditionOf(object, kind) == "True" })
	if at < 0 {
		return ""
	}
	return readyConditions[at]
}

// phaseOf returns the phase of a custom resource without a condition Ready or Available, and its field; empty if there is none. Types
// in lower case may be a history of phases, in which each of them is true.
func phaseOf(object *unstructured.Unstructured) (field, phase string) {
	if slices.ContainsFunc(conditionsOf(object), func(one conditionWords) bool { return one.kind == "Ready" || one.kind == "Available" }) {
		return "", ""
	}
	for _, name := range phaseFields {
		if phase, _, _ := unstructured.NestedString(object.Object, "status", name); phase != "" {
			return "status." + name, phase
		}
	}
	return "", ""
}

func isUnfinishedPhase(phase string) bool { return unfinishedPhase.MatchString(phase) }

func isReadyPhase(phase string) bool { return slices.Contains(readyPhases, strings.ToLower(phase)) }

// unfinished says that a custom resource is not finished, and why; empty if it is, or says nothing about it.
func unfinished(object *unstructured.Unstructured) (status, why string) {
	if status, message := apply.Status(object); status == "InProgress" || status == "Terminating" {
		return status, message
	}
	if field, phase := phaseOf(object); isUnfinishedPhase(phase) {
		return "InProgress", field + " is " + phase
	}
	return "", ""
}

// claimOf is how a custom resource reports that it is ready, and in which field; empty if it does not.
func claimOf(object *unstructured.Unstructured) (field, claim string) {
	if conditionOf(object, "Degraded") == "True" {
		return "", ""
	}
	if field, phase := phaseOf(object); phase != "" {
		if isReadyPhase(phase) {
			return field, phase
		}
		return "", ""
	}
	for _, kind := range []string{"Ready", "Available"} { // Available may only say that something answers
		switch conditionOf(object, kind) {
		case "True":
			return "status.conditions", "Ready"
		case "":
		default:
			return "", ""
		}
	}
	if kind := otherReadyCondition(object); kind != "" {
		return "status.conditions", kind
	}
	return "", ""
}

// isSettledReady reports whether a custom resource says that it is ready, and that this is about its current spec.
func isSettledReady(object *unstructured.Unstructured) bool {
	_, phase := phaseOf(object)
	says := isReadyPhase(phase) || phase == "" && (conditionOf(object, "Ready") == "True" || otherReadyCondition(object) != "")
	if status, _ := apply.Status(object); status != "Current" || !says {
		return false
	}
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return !slices.ContainsFunc(conditions, func(one any) bool {
		condition, _ := one.(map[string]any)
		observed, known, _ := unstructured.NestedInt64(condition, "observedGeneration")
		return known && observed < object.GetGeneration()
	})
}

// unfinishedAtRest returns the custom resources that are not finished undisturbed although the operator is at rest, and why: at the end of
// the last step that leaves them there.
func (c *campaign) unfinishedAtRest() (all []string) {
	for _, subject := range c.o.Subjects {
		for _, s := range slices.Backward(c.reference) {
			key, live := find(s.state, subject)
			if live == nil || live.GetDeletionTimestamp() != nil {
				continue
			}
			if _, why := unfinished(live); why != "" {
				all = append(all, key.String()+": "+shortened(firstLine(why)))
			}
			break
		}
	}
	return all
}
