// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/world"
)

// A kubelet evicts single pods, for example when its node runs out of memory. An evicted pod has failed for good and is not deleted:
// whatever created it must create another one. Operators that manage pods themselves easily overlook that, because the pod still
// exists.

const evictPods = "evicted"

// evictions are the pods that a run has evicted.
type evictions struct {
	evicted map[types.UID]bool
	running map[string]int // how many pods each workload had before
}

// evict evicts one pod of each workload.
func evict(r *run, p *Plan) *disturbance {
	e := &evictions{evicted: map[types.UID]bool{}}
	return &disturbance{
		act: func(ctx context.Context) error {
			pods := r.pods()
			e.running = perWorkload(pods)
			for _, pod := range oneOfEach(r.campaign.evictable(p.Step-1, pods)) {
				if err := r.evict(ctx, pod); err != nil {
					return err
				}
				e.evicted[pod.GetUID()] = true
			}
			return nil
		},
		meanwhile: func(context.Context) ([]*Observation, error) {
			state, pods := r.world.State(), r.pods()
			wrong := e.notReplaced(p.Step-1, state, pods)
			maps.DeleteFunc(state, func(_ world.Key, object *unstructured.Unstructured) bool { return e.isLeftover(object, pods) })
			return append(wrong, falseReady(p.Step-1, state, r.campaign.isSubject)...), nil
		},
		heal: func(ctx context.Context) error {
			for _, object := range r.world.State() {
				if !e.evicted[object.GetUID()] {
					continue
				}
				uid := object.GetUID()
				err := r.objects.Delete(ctx, object.DeepCopy(), client.Preconditions{UID: &uid})
				if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) { // another pod has taken the name
					return fmt.Errorf("deleting evicted pod %s: %w", object.GetName(), err)
				}
			}
			return nil
		},
		may: whatFails(p.Variant, r.world.State()),
	}
}

// notReplaced finds evicted pods for which there is no other.
func (e *evictions) notReplaced(step int, state world.State, pods []*unstructured.Unstructured) (wrong []*Observation) {
	for _, key := range sortedKeys(state) {
		if object := state[key]; e.evicted[object.GetUID()] && !e.isLeftover(object, pods) {
			wrong = append(wrong, &Observation{
				Step: step, Verdict: "end-state", Severity: high, Object: key.String(), Title: "An evicted pod is not replaced",
				Want: "another pod, because this one never runs again", Got: "the evicted pod, with the phase Failed",
			})
		}
	}
	return wrong
}

// isLeftover reports whether an object is an evicted pod that was replaced. ReplicaSets keep such pods, and in the end the garbage
// collector of pods deletes them.
func (e *evictions) isLeftover(object *unstructured.Unstructured, pods []*unstructured.Unstructured) bool {
	workload := workloadOf(object)
	return e.evicted[object.GetUID()] && perWorkload(pods)[workload] >= e.running[workload]
}

// evictable selects the pods that something creates again. The failure of a pod that runs to completion may be what its Job or its
// custom resource reports.
func (c *campaign) evictable(step int, pods []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(c.replaceable(step, pods), func(pod *unstructured.Unstructured) bool {
		policy, _, _ := unstructured.NestedString(pod.Object, "spec", "restartPolicy")
		controller := metav1.GetControllerOf(pod)
		return policy == string(corev1.RestartPolicyNever) || policy == string(corev1.RestartPolicyOnFailure) || controller != nil && controller.Kind == "Job"
	})
}

// evict gives a pod the status that a kubelet gives it.
func (r *run) evict(ctx context.Context, pod *unstructured.Unstructured) error {
	conditions := []map[string]any{{"type": corev1.DisruptionTarget, "status": "True", "reason": corev1.PodReasonTerminationByKubelet}}
	for _, ready := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		conditions = append(conditions, map[string]any{"type": ready, "status": "False", "reason": "PodFailed"})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": corev1.PodFailed, "reason": "Evicted", "message": "The node was low on resource: memory.", "conditions": conditions,
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	// Conditions are merged by their type only in this kind of patch, which needs the type of the object.
	target := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.GetNamespace(), Name: pod.GetName()}}
	err = r.objects.Status().Patch(ctx, target, client.RawPatch(types.StrategicMergePatchType, patch), client.FieldOwner(manager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("evicting pod %s: %w", pod.GetName(), err)
	}
	return nil
}

// workloadOf identifies what a pod belongs to: its controller, or nothing.
func workloadOf(pod *unstructured.Unstructured) string {
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		return pod.GetNamespace()
	}
	return string(controller.UID)
}

// perWorkload counts pods.
func perWorkload(pods []*unstructured.Unstructured) map[string]int {
	counts := map[string]int{}
	for _, pod := range pods {
		counts[workloadOf(pod)]++
	}
	return counts
}

// oneOfEach selects the first pod by name of each workload.
func oneOfEach(pods []*unstructured.Unstructured) []*unstructured.Unstructured {
	first := slices.SortedFunc(slices.Values(pods), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(workloadOf(a), workloadOf(b)), cmp.Compare(a.GetName(), b.GetName()))
	})
	return slices.CompactFunc(first, func(a, b *unstructured.Unstructured) bool { return workloadOf(a) == workloadOf(b) })
}
