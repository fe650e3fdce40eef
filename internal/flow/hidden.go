// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReasonLabelChanged means that admission changes a label by which the manager finds its children.
const ReasonLabelChanged = "LabelChanged"

// isCached reports whether the caches hold a child. After a write of any other child, do not wait for the cache: it
// would never have it.
func (p *Pass) isCached(object client.Object) bool {
	return p.cachesAll || object.GetLabels()[LabelManagedBy] == ManagedBy
}

// UnlessHidden is the outcome of a child that was written, or matches its configuration. If it lacks the label nevertheless,
// admission changes it with each write. No cache reports such a child, so the owner is retried. Apply calls it. It is
// exported for children that are not applied.
func (p *Pass) UnlessHidden(object client.Object) error {
	if p.isCached(object) {
		p.own.shown(object)
		return nil
	}
	p.own.hides(object)
	return StalledRetrying(ReasonLabelChanged, fmt.Errorf(
		"%s has the label %s=%q after it was written with %q, so the manager cannot watch it; exclude it from the admission policy or webhook that changes this label",
		describe(object, object.GetName()), LabelManagedBy, object.GetLabels()[LabelManagedBy], ManagedBy))
}

// IsHidden reports whether admission changes that label of children like this one, so that no read must wait for a write.
func (p *Pass) IsHidden(object client.Object) bool { return p.own.isHidden(object) }

// LabelChanged is the outcome if a child that is not applied has another value of a label after it was written. A watch
// reports the child, but not that admission has changed its mind, so the owner is retried.
func LabelChanged(object client.Object, label, written string) error {
	return StalledRetrying(ReasonLabelChanged, fmt.Errorf(
		"%s has the label %s=%q after it was written with %q; exclude it from the admission policy or webhook that changes this label",
		describe(object, object.GetName()), label, object.GetLabels()[label], written))
}

// Hidden fills in a child that the cache does not hold, although it belongs to the owner: its label was removed. If there is
// none, the object stays empty.
func (p *Pass) Hidden(ctx context.Context, object client.Object, name string) (found bool, err error) {
	err = p.reader.Get(ctx, types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name}, object)
	if err == nil && metav1.IsControlledBy(object, p.owner) {
		return true, nil
	}
	clearObject(object)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading %s: %w", describe(object, name), err)
	}
	return false, nil
}
