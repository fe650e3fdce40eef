// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/prove/world"
)

// behaviour is the annotation that simulated pods obey.
const behaviour = "opdock.dev/behaviour"

var failures = []struct{ name, says string }{
	{"never-ready", "All pods stop being ready, and recover"},
	{"crash-loop", "All pods crash again and again, and recover"},
	{nodeLost, "The nodes of all pods are lost, and come back"},
	{evictPods, "One pod of each workload is evicted by its kubelet"},
	{deletePods, "All pods are deleted by another user"},
}

const (
	nodeLost   = "node-lost"
	deletePods = "delete"
)

func podsPlans(c *campaign) (plans []*Plan) {
	if step := c.disturbedStep(); step > 0 && c.hasPods(step-1) {
		for i, one := range failures {
			pods := c.podsIn(c.reference[step-1].state)
			if one.name == deletePods && len(c.replaceable(step-1, pods)) == 0 || one.name == evictPods && len(c.evictable(step-1, pods)) == 0 {
				continue
			}
			plans = append(plans, &Plan{Family: "pods", Variant: one.name, Step: step, Says: one.says, rank: i})
		}
	}
	for step := range c.reference {
		if c.hasPods(step) {
			return append(plans, &Plan{Family: "pods", Variant: imagePull, Step: step, rank: 1, Says: "No new pod can pull its image, and later all can"})
		}
	}
	return plans
}

// hasPods reports whether the scenario has pods at the end of a step.
func (c *campaign) hasPods(step int) bool { return len(c.podsIn(c.reference[step].state)) > 0 }

// pods returns the pods of the scenario.
func (r *run) pods() []*unstructured.Unstructured { return r.campaign.podsIn(r.world.State()) }

// podsIn are the pods of the scenario that have not ended. Those of a Job that is finished do not run again, and are not created
// again.
func (c *campaign) podsIn(state world.State) (pods []*unstructured.Unstructured) {
	for key, object := range state {
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		if _, was := c.before[key]; key.Resource == "pods" && !was && phase != string(corev1.PodSucceeded) && phase != string(corev1.PodFailed) {
			pods = append(pods, object)
		}
	}
	return pods
}

// replaceable selects the pods that a controller or the operator created. It deletes the others from the slice: a pod that
// the scenario itself created stays away after its deletion, and one with an earlier template comes back with the new one.
func (c *campaign) replaceable(step int, pods []*unstructured.Unstructured) []*unstructured.Unstructured {
	created := map[string]bool{}
	for _, child := range c.children(step) {
		created[child.key.String()] = child.made
	}
	workloads := map[types.UID]*unstructured.Unstructured{}
	for _, object := range c.reference[step].state {
		workloads[object.GetUID()] = object
	}
	return slices.DeleteFunc(pods, func(pod *unstructured.Unstructured) bool {
		key := world.Key{Kind: "Pod", Namespace: pod.GetNamespace(), Name: pod.GetName()}
		controller := metav1.GetControllerOf(pod)
		return controller == nil && !created[key.String()] || controller != nil && isOutdated(pod, workloads[controller.UID])
	})
}

// isOutdated reports whether a StatefulSet or DaemonSet with the strategy OnDelete would recreate a pod from another template.
func isOutdated(pod, workload *unstructured.Unstructured) bool {
	if workload == nil {
		return false
	}
	strategy, _, _ := unstructured.NestedString(workload.Object, "spec", "updateStrategy", "type")
	status, _, _ := unstructured.NestedMap(workload.Object, "status")
	switch {
	case strategy != "OnDelete":
		return false
	case workload.GetKind() == "StatefulSet":
		return pod.GetLabels()[appsv1.ControllerRevisionHashLabelKey] != status["updateRevision"]
	}
	return status["updatedNumberScheduled"] != status["desiredNumberScheduled"]
}

func breakPods(r *run, p *Plan) (*disturbance, error) {
	if p.Variant == imagePull {
		return failPulls(r, p), nil
	}
	if p.Variant == evictPods {
		return evict(r, p), nil
	}
	each := func(value any) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, pod := range r.pods() {
				if err := r.annotate(ctx, pod, behaviour, value); err != nil {
					return err
				}
			}
			return nil
		}
	}
	if p.Variant == deletePods {
		return &disturbance{may: whatFails(p.Variant, r.world.State()), act: func(ctx context.Context) error {
			for _, pod := range r.campaign.replaceable(p.Step-1, r.pods()) {
				if err := client.IgnoreNotFound(r.objects.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0))); err != nil {
					return fmt.Errorf("deleting pod %s: %w", pod.GetName(), err)
				}
			}
			return nil
		}}, nil
	}
	return &disturbance{act: each(p.Variant), heal: each(nil), meanwhile: r.falseReady(p.Step - 1), may: whatFails(p.Variant, r.world.State())}, nil
}

// falseReady finds custom resources that report ready while a workload that they own is not.
func (r *run) falseReady(step int) func(context.Context) ([]*Observation, error) {
	return func(context.Context) ([]*Observation, error) {
		return falseReady(step, r.world.State(), r.campaign.isSubject), nil
	}
}

func falseReady(step int, state world.State, isSubject func(string) bool) (wrong []*Observation) {
	broken := brokenIn(state)
	keys := sortedKeys(state)
	for _, key := range keys {
		owner := state[key]
		field, claim := claimOf(owner)
		if claim == "" || !isSubject(key.String()) {
			continue
		}
		at := slices.IndexFunc(keys, func(one world.Key) bool {
			_, is := broken[state[one].GetUID()]
			return is && isOwnedBy(state[one], owner)
		})
		if at < 0 {
			continue
		}
		wrong = append(wrong, &Observation{
			Step: step, Verdict: "status", Severity: medium, Object: key.String(), Title: aKind(key.Kind) + " reports that it is ready although its workload is not",
			Fields: []string{field}, Want: "not " + claim + ", because " + broken[state[keys[at]].GetUID()], Got: claim,
		})
	}
	return wrong
}

// brokenIn returns the workloads in a state that are not ready, and why.
func brokenIn(state world.State) map[types.UID]string {
	broken := map[types.UID]string{}
	for key, object := range state {
		if status, message := apply.Status(object); key.Group == "apps" && key.Resource != "replicasets" && status == "InProgress" {
			broken[object.GetUID()] = key.String() + ": " + message
		}
		phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
		switch {
		case key.Resource != "pods":
			if conditionOf(object, "Ready") == "False" && len(object.GetOwnerReferences()) > 0 {
				broken[object.GetUID()] = key.String() + " is not ready" // a custom resource that another one consists of, for example
			}
		case !isReadyPod(object) && phase != string(corev1.PodSucceeded): // which has done its work
			broken[object.GetUID()] = key.Kind + " is not ready"
		}
	}
	return broken
}

func isOwnedBy(object, owner *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(one metav1.OwnerReference) bool { return one.UID == owner.GetUID() })
}

func isReadyPod(pod *unstructured.Unstructured) bool { return conditionOf(pod, "Ready") == "True" }

func conditionOf(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if condition, ok := one.(map[string]any); ok && strings.EqualFold(fmt.Sprint(condition["type"]), kind) {
			return fmt.Sprint(condition["status"])
		}
	}
	return ""
}
