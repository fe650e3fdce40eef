// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/flow"
)

// Matters reports whether there may be more to a change of a Deployment than other numbers in its status: whether its spec
// or metadata has changed, or the verdict on its rollout is another one.
func Matters(before, after client.Object) bool {
	old, isOld := before.(*appsv1.Deployment)
	fresh, isNew := after.(*appsv1.Deployment)
	if !isOld || !isNew || old.Generation != fresh.Generation || old.UID != fresh.UID || !equality.Semantic.DeepEqual(old.OwnerReferences, fresh.OwnerReferences) ||
		old.DeletionTimestamp.IsZero() != fresh.DeletionTimestamp.IsZero() || !maps.Equal(old.Labels, fresh.Labels) ||
		old.Annotations[flow.AppliedAnnotation] != fresh.Annotations[flow.AppliedAnnotation] {
		return true
	}
	was, is := Outcome(old, nil), Outcome(fresh, nil)
	return flow.IsStalled(was) != flow.IsStalled(is) || flow.IsWaiting(was) != flow.IsWaiting(is) ||
		flow.IsStalled(is) && flow.Reason(was) != flow.Reason(is)
}
