// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/health"
)

// status is how far a controller is with an object, in the words of kstatus.
type status string

const (
	current     status = "Current"     // the object matches its spec
	inProgress  status = "InProgress"  // a controller works on it
	failed      status = "Failed"      // it cannot become current without a change
	terminating status = "Terminating" // it is being deleted
	notFound    status = "NotFound"
)

// state is the status of an object, and why it is not current.
type state struct {
	status  status
	message string
}

// stateOf computes the state of an object by the rules of kstatus. The rules are implemented here, because the module
// of kstatus would raise the version of k8s.io/kube-openapi, on which the output of our generators depends.
func stateOf(object *unstructured.Unstructured) state {
	if object == nil {
		return state{notFound, "it does not exist"}
	}
	if object.GetDeletionTimestamp() != nil {
		return state{terminating, "it is being deleted"}
	}
	observed, known, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if known && observed != object.GetGeneration() {
		return state{inProgress, "the rollout has not started yet"}
	}
	conditions := conditionsOf(object)
	for _, one := range conditions {
		switch {
		case one.kind == "Reconciling" && one.status == "True":
			return state{inProgress, one.text()}
		case one.kind == "Stalled" && one.status == "True":
			return state{failed, one.text()}
		}
	}
	switch (schema.GroupKind{Group: object.GroupVersionKind().Group, Kind: object.GetKind()}) {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}:
		return stateOfDeployment(object)
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		return stateOfStatefulSet(object)
	case schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
		return stateOfDaemonSet(object)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return stateOfJob(conditions)
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		established, reason, err := establishment(object)
		switch {
		case err != nil:
			return state{failed, reason}
		case !established:
			return state{inProgress, reason}
		}
		return state{status: current}
	}
	for _, one := range conditions {
		if one.kind == "Ready" && one.status != "True" {
			return state{inProgress, one.text()}
		}
	}
	return state{status: current}
}

// condition is a part of the status of most objects.
type condition struct{ kind, status, reason, message string }

func (c condition) text() string {
	switch {
	case c.message != "":
		return c.message
	case c.reason != "":
		return c.reason
	default:
		return c.kind + " is " + c.status
	}
}

func conditionsOf(object *unstructured.Unstructured) []condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	var all []condition
	for _, one := range list {
		fields, _ := one.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		all = append(all, condition{text("type"), text("status"), text("reason"), text("message")})
	}
	return all
}

func stateOfDeployment(object *unstructured.Unstructured) state {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
		return state{failed, err.Error()}
	}
	rollout := health.RolloutOf(&deployment, nil)
	switch {
	case rollout.Complete():
		return state{status: current}
	case rollout.Reason == "ProgressDeadlineExceeded":
		return state{failed, rollout.Message}
	default:
		return state{inProgress, rollout.Message}
	}
}

func stateOfStatefulSet(object *unstructured.Unstructured) state {
	var set appsv1.StatefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return state{failed, err.Error()}
	}
	return rollingOut(set.Generation, set.Status.ObservedGeneration, ptr.Deref(set.Spec.Replicas, 1), set.Status.UpdatedReplicas, set.Status.AvailableReplicas)
}

func stateOfDaemonSet(object *unstructured.Unstructured) state {
	var set appsv1.DaemonSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		return state{failed, err.Error()}
	}
	return rollingOut(set.Generation, set.Status.ObservedGeneration, set.Status.DesiredNumberScheduled, set.Status.UpdatedNumberScheduled, set.Status.NumberAvailable)
}

func rollingOut(generation, observed int64, want, updated, available int32) state {
	switch {
	case observed < generation:
		return state{inProgress, "the rollout has not started yet"}
	case updated >= want && available >= want:
		return state{status: current}
	default:
		return state{inProgress, fmt.Sprintf("%d of %d pods are updated, %d are available", updated, want, available)}
	}
}

// stateOfJob is current as soon as the Job has started, as kstatus has it: it may run for long.
func stateOfJob(conditions []condition) state {
	for _, one := range conditions {
		if one.kind == "Failed" && one.status == "True" {
			return state{failed, one.text()}
		}
	}
	return state{status: current}
}

// Status returns the state of an object in the terms of kstatus (Current, InProgress, Failed, Terminating), and why
// it is not current.
func Status(object *unstructured.Unstructured) (name, message string) {
	found := stateOf(object)
	return string(found.status), found.message
}
