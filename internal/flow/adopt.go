// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// AdoptAnnotation on a custom resource, with the value "true", allows it to adopt existing objects that have the
// names of its children and no controller, whatever their labels are. It is for migrations.
const AdoptAnnotation = "opdock.dev/adopt"

// adopt decides whether the owner may become the controller of an existing object that has the name of a child. It
// reads the object from the server, because a cache may not have its latest controller. The request that applies the
// child then writes the owner reference; the server refuses a second controller.
func (p *Pass) adopt(ctx context.Context, object client.Object) error {
	if err := p.refresh(ctx, object); err != nil {
		return err
	}
	switch controller := metav1.GetControllerOf(object); {
	case metav1.IsControlledBy(object, p.owner):
		return nil
	case controller != nil && p.isPredecessor(controller):
		if err := p.watchBystander(ctx, object); err != nil {
			return err
		}
		return Waiting(reasonDeleting, "%s belongs to a deleted %s of the same name and is about to be garbage-collected",
			describe(object, object.GetName()), controller.Kind)
	case !p.isAdoptable(object):
		return p.Taken(ctx, object)
	}
	return p.mayAdopt(ctx)
}

// isAdoptable reports whether the owner may adopt an object without a controller: it has the labels of the owner's
// children, it was a child of this kind and its labels name no other owner, or the owner has AdoptAnnotation.
func (p *Pass) isAdoptable(object client.Object) bool {
	if object.GetUID() == "" || metav1.GetControllerOfNoCopy(object) != nil {
		return false
	}
	return p.owner.GetAnnotations()[AdoptAnnotation] == "true" || p.wasChild(object)
}

// wasChild reports whether an object without a controller was a child of the owner, or of one with its name.
func (p *Pass) wasChild(object client.Object) bool {
	return p.bearsLabels(object) || !p.namesAnother(object) && p.wasSetByUs(object)
}

// wasSetByUs reports whether an object has fields in its spec or data that this kind's controller has set. It was a child
// then: one request, such as kubectl replace with another manifest, can remove the owner reference and any of the labels.
func (p *Pass) wasSetByUs(object client.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return isEntryOf(&entry, p.fieldOwner) && ConcernsSpec(entry)
	})
}

// namesAnother reports whether the labels of an object name another tool, or another owner of the fleet, as after an
// orphaning deletion of that owner. Users have these labels in manifests of their own, so without LabelManagedBy, the
// other owner must be of the same kind.
func (p *Pass) namesAnother(object client.Object) bool {
	kind, instance := object.GetLabels()[LabelKind], object.GetLabels()[LabelInstance]
	isOther := instance != "" && instance != p.owner.GetName()
	switch object.GetLabels()[LabelManagedBy] {
	case ManagedBy:
		return isOther || kind != "" && kind != p.labelKind
	case "":
		return isOther && kind == p.labelKind
	default:
		return true
	}
}

func (p *Pass) bearsLabels(object client.Object) bool {
	for name, value := range p.labels() {
		if object.GetLabels()[name] != value {
			return false
		}
	}
	return true
}

// isPredecessor reports whether a controller is an object of the owner's kind and name that was there before it.
func (p *Pass) isPredecessor(controller *metav1.OwnerReference) bool {
	gvk, err := apiutil.GVKForObject(p.owner, p.client.Scheme())
	group, _, _ := strings.Cut(controller.APIVersion, "/")
	return err == nil && group == gvk.Group && controller.Kind == gvk.Kind && controller.Name == p.owner.GetName() && controller.UID != p.owner.GetUID()
}

// mayAdopt asks the server whether the owner still exists and is not being deleted. The cache may be stale, and
// objects that a deletion has just orphaned on purpose must not be adopted.
func (p *Pass) mayAdopt(ctx context.Context) error {
	fresh := newLike(p.owner)
	if err := p.reader.Get(ctx, client.ObjectKeyFromObject(p.owner), fresh); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading %s before it adopts: %w", p.owner.GetName(), err)
	}
	if fresh.GetUID() != p.owner.GetUID() || !fresh.GetDeletionTimestamp().IsZero() {
		// The event about it is on its way.
		return Waiting(reasonDeleting, "%s is being deleted or was replaced, so it adopts nothing", describe(p.owner, p.owner.GetName()))
	}
	return nil
}

// Taken is the outcome if another object has the name of a child. That object is watched, and the owner is
// reconciled again when it changes or is deleted. Apply calls it. It is exported for children that are not applied.
func (p *Pass) Taken(ctx context.Context, object client.Object) error {
	name := describe(object, object.GetName())
	err := fmt.Errorf("%s already exists and has no controller, so it is not changed; delete or rename it, give this object another name, "+
		"or annotate this object with %s=true to adopt it", name, AdoptAnnotation)
	if controller := metav1.GetControllerOf(object); controller != nil {
		err = fmt.Errorf("%s already exists and is controlled by %s %s, so it is not changed; delete or rename it, or give this object another name",
			name, controller.Kind, controller.Name)
	}
	if p.watchBystander(ctx, object) != nil {
		// No event will trigger the owner, so it is requeued.
		return StalledRetrying(ReasonResourceExists, err)
	}
	return Stalled(ReasonResourceExists, err)
}

func (p *Pass) watchBystander(ctx context.Context, object client.Object) error {
	if p.bystanders == nil {
		return nil
	}
	return p.bystanders.watch(ctx, object, p.owner)
}
