// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/world"
)

// A StatefulSet that updates its pods in order waits until the last one that it replaced is ready. If its template is put right
// meanwhile, it waits for ever, and Kubernetes tells its users to delete that pod. No operator has to do that, so it is done here.

// unstick waits until the operator has put right what it made of a wrong value, and deletes the pods that are left of it.
func (r *run) unstick(ctx context.Context) error {
	if !slices.ContainsFunc(r.pods(), func(pod *unstructured.Unstructured) bool { return !isReadyPod(pod) }) {
		return nil
	}
	if _, err := r.settle(ctx); err != nil {
		return err
	}
	for _, pod := range stuckPods(r.world.State()) {
		r.note(fmt.Sprintf("pod %s is deleted: it has the template from before, and its StatefulSet waits for it", pod.GetName()))
		err := r.objects.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0), client.Preconditions{UID: new(pod.GetUID())})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // else that pod is gone
			return fmt.Errorf("deleting pod %s: %w", pod.GetName(), err)
		}
	}
	return nil
}

// stuckPods returns the pods that are not ready, and that a StatefulSet made of another template than it has now.
func stuckPods(state world.State) (stuck []*unstructured.Unstructured) {
	for key, set := range state {
		if key.Group != "apps" || key.Kind != "StatefulSet" || !updatesInOrder(set) {
			continue
		}
		wanted, _, _ := unstructured.NestedString(set.Object, "status", "updateRevision")
		for key, pod := range state {
			if key.Group == "" && key.Kind == "Pod" && metav1.IsControlledBy(pod, set) && !isReadyPod(pod) && pod.GetLabels()[appsv1.StatefulSetRevisionLabel] != wanted {
				stuck = append(stuck, pod)
			}
		}
	}
	slices.SortFunc(stuck, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return stuck
}

// updatesInOrder reports whether a StatefulSet replaces its pods itself, one after the other, and has seen its current template.
func updatesInOrder(set *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(set.Object, "spec", "updateStrategy", "type")
	management, _, _ := unstructured.NestedString(set.Object, "spec", "podManagementPolicy")
	observed, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
	return strategy == string(appsv1.RollingUpdateStatefulSetStrategyType) && management == string(appsv1.OrderedReadyPodManagement) && observed == set.GetGeneration()
}
