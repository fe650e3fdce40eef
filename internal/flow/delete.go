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

// Delete deletes the child with this type and name, if it exists and the owner controls it, or would adopt it by its labels. It
// returns whether the child is gone.
func (p *Pass) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) (gone bool, err error) {
	defer func() { p.hasObsolete = p.hasObsolete || !gone }()
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
	isOrphan := !metav1.IsControlledBy(object, p.owner)
	if isOrphan {
		if isOurs, err := p.isOurOrphan(ctx, object); !isOurs || err != nil {
			return !isOurs && err == nil, err
		}
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	all := (&client.DeleteOptions{}).ApplyOptions(options)
	if all.Preconditions == nil {
		all.Preconditions = &metav1.Preconditions{}
	}
	all.Preconditions.UID = ptr.To(object.GetUID())
	if isOrphan {
		// It must not have got a controller meanwhile.
		all.Preconditions.ResourceVersion = ptr.To(object.GetResourceVersion())
	}
	if err := p.client.Delete(ctx, object, all); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("deleting %s: %w", describe(object, name), err)
	}
	p.Changed("Deleted %s", describe(object, name))
	return false, nil
}

// AsksServer reports whether there may be obsolete children that the caches do not hold: the spec has changed since the last pass,
// or that pass has failed. Delete asks the server for them. It is exported for children that are found by their labels.
func (p *Pass) AsksServer() bool { return p.asksServer }

// isOurOrphan reports whether an object that the owner does not control is a child without an owner reference, which Apply would
// adopt if it were still part of the spec. The object is replaced with the server's version. While the owner is being deleted,
// such objects stay: they were released on purpose.
func (p *Pass) isOurOrphan(ctx context.Context, object client.Object) (bool, error) {
	isOrphan := func() bool { return metav1.GetControllerOfNoCopy(object) == nil && p.bearsLabels(object) }
	if !isOrphan() || !p.owner.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	key := client.ObjectKeyFromObject(object)
	clearObject(object)
	if err := p.reader.Get(ctx, key, object); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading %s: %w", describe(object, key.Name), err)
	}
	if !isOrphan() {
		return false, nil
	}
	return true, p.mayAdopt(ctx)
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
	reason := reasonDeleting
	if !p.isCached(object) {
		reason = reasonDeletingUnlabeled
	}
	return p.awaitGone(ctx, object, reason, "%s is no longer part of the spec and is being deleted", describe(object, object.GetName()))
}

// awaitGone is Waiting while a child is being deleted.
func (p *Pass) awaitGone(ctx context.Context, object client.Object, reason, format string, args ...any) error {
	if err := p.WatchEnd(ctx, object); err != nil {
		return err
	}
	return Waiting(reason, format, args...)
}

// WatchEnd is called for a child that is being deleted. No event triggers the owner when a child without its label is gone, which
// the caches do not hold, or one without an owner reference. Such a child is watched on its own. Apply and Remove call it. It is
// exported for children that are deleted by Delete.
func (p *Pass) WatchEnd(ctx context.Context, object client.Object) error {
	if p.isCached(object) && metav1.IsControlledBy(object, p.owner) {
		return nil
	}
	return p.watchBystander(ctx, object)
}

const (
	// reasonDeleting means that a child is being deleted. It can lose its label meanwhile, so the next pass asks the server for
	// children that the caches do not hold.
	reasonDeleting = "Deleting"

	// reasonDeletingUnlabeled means that a child is being deleted that the caches do not hold, because its label was removed.
	reasonDeletingUnlabeled = "DeletingUnlabeled"
)
