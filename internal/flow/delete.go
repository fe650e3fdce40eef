// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Delete deletes the child with this type and name, if it exists and the owner controls it. It returns whether the
// child is gone.
func (p *Pass) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) (gone bool, err error) {
	name := object.GetName()
	object.SetNamespace(p.owner.GetNamespace())
	key := client.ObjectKeyFromObject(object)
	mayExist := p.asksServer || object.GetUID() != ""
	err = p.client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) && mayExist {
		// The cache does not hold a child whose label was removed. Only a new spec can make a child obsolete, so ask
		// the server now. The cache will not report the deletion either, so do not wait for it.
		err = p.reader.Get(ctx, key, object)
		options = append(slices.Clip(options), client.DisableReadYourWritesConsistency)
	}
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(object, p.owner) {
		return true, nil
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	all := (&client.DeleteOptions{}).ApplyOptions(options)
	if all.Preconditions == nil {
		all.Preconditions = &metav1.Preconditions{}
	}
	all.Preconditions.UID = ptr.To(object.GetUID())
	if err := p.client.Delete(ctx, object, all); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("deleting %s: %w", describe(object, name), err)
	}
	p.Changed("Deleted %s", describe(object, name))
	return false, nil
}

// Remove is Delete for a child that is no longer part of the spec. The outcome is Waiting until it is gone: while a
// finalizer holds it, it still has its effect.
func (p *Pass) Remove(ctx context.Context, object client.Object) error {
	gone, err := p.Delete(ctx, object)
	if gone || err != nil {
		return err
	}
	if object.GetDeletionTimestamp().IsZero() && len(object.GetFinalizers()) == 0 {
		return nil // the server has deleted it at once
	}
	reason := "Deleting"
	if !p.isCached(object) {
		reason = reasonDeletingUnlabeled
	}
	return p.AwaitGone(ctx, object, reason, "%s is no longer part of the spec and is being deleted", describe(object, object.GetName()))
}

// AwaitGone is Waiting while a child is being deleted. The caches do not report the end of a child whose label was removed, so
// that one is watched on its own. Apply and Remove call it. It is exported for children that are deleted by Delete.
func (p *Pass) AwaitGone(ctx context.Context, object client.Object, reason, format string, args ...any) error {
	if !p.isCached(object) {
		if err := p.watchBystander(ctx, object); err != nil {
			return err
		}
	}
	return Waiting(reason, format, args...)
}

// reasonDeletingUnlabeled means that a child is being deleted that the caches do not hold, because its label was removed. The
// next pass asks the server for such children again.
const reasonDeletingUnlabeled = "DeletingUnlabeled"
