// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// Condition types and phases that many operators use, in order of precedence. kstatus supports only Ready,
// Reconciling and Stalled, and considers every other object current.
var (
	// positiveTypes mean success if they are true. kubebuilder's scaffold uses Available; other operators use the
	// rest.
	positiveTypes = []string{
		sharedv1.ConditionReady, "Available", "Succeeded", "Complete", "Completed", "Healthy", "Synced", "Reconciled", "ReconcileSuccess",
		"Deployed", "Running", "Active", "Established", "Programmed", "Accepted", "Valid",
	}
	// negativeTypes mean a failure if they are true.
	negativeTypes = []string{sharedv1.ConditionStalled, "Failed", "Degraded", "ReconcileError", "ReconcileFailed", "Error", "ErrorOccurred"}
	// busyTypes mean progress if they are true.
	busyTypes = []string{sharedv1.ConditionReconciling, "Progressing", "Updating", "Pending"}

	goodPhases = []string{
		"ready", "available", "running", "active", "bound", "succeeded", "success", "complete", "completed", "healthy", "done", "deployed", "synced", "ok",
	}
	badPhases = []string{"failed", "failure", "error", "errored", "degraded", "unhealthy", "invalid", "crashed", "lost"}
	// phaseFields are the fields in which operators without conditions report the state.
	phaseFields = []string{"phase", "state", "health", "status"}
)

// statusNew is the status of an object without a written status.
const statusNew = "New"

// describeStatus describes the state of a custom resource by the conditions or other fields of its status.
func (o *Object) describeStatus(object *unstructured.Unstructured) {
	o.State = Busy
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	conditions := conditionsOf(object)
	switch {
	case len(conditions) == 0 && !hasContent(status):
		o.Status, o.Message = statusNew, "no controller has written its status yet"
	case outdated(object, status, conditions):
		o.Status, o.Message = "Changed", "its status describes an earlier spec"
	case len(conditions) > 0:
		o.describeConditions(conditions)
	default:
		o.describePhase(status)
	}
}

// hasContent reports whether a status has content: the list of conditions may be empty or invalid, and typed clients
// write zeros for unset counts.
func hasContent(status map[string]any) bool {
	for field, value := range status {
		if field == "ready" || field != "conditions" && !isZero(value) {
			return true
		}
	}
	return false
}

// isZero reports whether a value is the zero value of its type, or contains only zero values.
func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, one := range value {
			if !isZero(one) {
				return false
			}
		}
		return true
	case []any:
		return len(value) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// outdated reports whether the controller has not observed the current spec yet, if the status says which one it
// observed.
func outdated(object *unstructured.Unstructured, status map[string]any, conditions []metav1.Condition) bool {
	generation := object.GetGeneration()
	if observed, found, _ := unstructured.NestedInt64(status, "observedGeneration"); found && observed != 0 && observed < generation {
		return true
	}
	chief := firstOf(conditions, positiveTypes)
	return chief != nil && chief.ObservedGeneration != 0 && chief.ObservedGeneration < generation
}

func (o *Object) describeConditions(conditions []metav1.Condition) {
	positive := firstOf(conditions, positiveTypes)
	negative := firstTrue(conditions, negativeTypes)
	busy := firstTrue(conditions, busyTypes)
	isReady := positive != nil && positive.Type == sharedv1.ConditionReady
	switch {
	case isReady && positive.Status == metav1.ConditionTrue:
		o.State, o.Status = Good, positive.Type // Ready summarizes the others
	case negative != nil:
		o.State, o.Status, o.Reason, o.Message = Bad, negative.Type, negative.Reason, negative.Message
	case positive != nil && positive.Status == metav1.ConditionTrue:
		o.State, o.Status = Good, positive.Type
	case isReady && positive.Status == metav1.ConditionUnknown:
		// Usually Suspended. The reason is more specific than the status.
		o.State, o.Status, o.Message = Paused, positive.Reason, positive.Message
	case isReady:
		o.Status, o.Reason, o.Message = sharedv1.ConditionReconciling, positive.Reason, positive.Message
	case busy != nil:
		o.Status, o.Reason, o.Message = busy.Type, busy.Reason, busy.Message
	case positive != nil && positive.Status == metav1.ConditionFalse:
		o.Status, o.Reason, o.Message = "Not "+positive.Type, positive.Reason, positive.Message
	case positive != nil:
		o.Status, o.Reason, o.Message = sharedv1.ConditionReconciling, positive.Reason, positive.Message
	default:
		o.describeUnknown(conditions)
	}
}

// describeUnknown shows the condition that changed last. It is not judged, because its meaning is unknown.
func (o *Object) describeUnknown(conditions []metav1.Condition) {
	last := conditions[0]
	for _, one := range conditions[1:] {
		if one.LastTransitionTime.After(last.LastTransitionTime.Time) {
			last = one
		}
	}
	o.State, o.Status, o.Reason, o.Message = Plain, last.Type, last.Reason, last.Message
	if last.Status != metav1.ConditionTrue {
		o.Status += " " + string(last.Status)
	}
}

// describePhase reads a status without conditions. A status without health information is current, as in kstatus,
// because a controller has written it.
func (o *Object) describePhase(status map[string]any) {
	if ready, found, _ := unstructured.NestedBool(status, "ready"); found {
		o.Status = "Not ready"
		if ready {
			o.State, o.Status = Good, "Ready"
		}
		return
	}
	for _, field := range phaseFields {
		phase, _, _ := unstructured.NestedString(status, field)
		if phase == "" {
			continue
		}
		o.Status = phase
		o.Reason, _, _ = unstructured.NestedString(status, "reason")
		o.Message, _, _ = unstructured.NestedString(status, "message")
		switch word := strings.ToLower(phase); {
		case slices.Contains(goodPhases, word):
			o.State, o.Reason, o.Message = Good, "", ""
		case slices.Contains(badPhases, word):
			o.State = Bad
		case !strings.HasSuffix(word, "ing"):
			o.State = Plain
		}
		return
	}
	o.State, o.Status = Good, "Current"
}

func firstOf(conditions []metav1.Condition, types []string) *metav1.Condition {
	for _, one := range types {
		if found := meta.FindStatusCondition(conditions, one); found != nil {
			return found
		}
	}
	return nil
}

func firstTrue(conditions []metav1.Condition, types []string) *metav1.Condition {
	for _, one := range types {
		if found := meta.FindStatusCondition(conditions, one); found != nil && found.Status == metav1.ConditionTrue {
			return found
		}
	}
	return nil
}
