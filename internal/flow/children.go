// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Labels that every child has, and every pod that belongs to an object of the fleet. The caches of the manager hold
// only objects with LabelManagedBy.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelKind      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"

	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "opdock"
)

// Apply makes a child be as the configuration says, and fills in object, which must be empty, with what it is then.
// The configuration is one of those in client-go's applyconfigurations, or anything else that has the JSON of an
// object; labels and the reference to its owner are added here. If the child is as it should be, nothing is written.
//
// A child of that name that belongs to somebody else is left alone: the outcome is Stalled, until it is gone.
func (p *Pass) Apply(ctx context.Context, object client.Object, configuration any) error {
	desired, err := p.complete(configuration)
	if err != nil {
		return err
	}
	if err := p.find(ctx, object, nameIn(desired)); client.IgnoreNotFound(err) != nil {
		return err
	}
	exists := object.GetUID() != ""
	if exists && !metav1.IsControlledBy(object, p.owner) {
		return p.Taken(ctx, object)
	}
	hash, err := hashOf(desired)
	if err != nil {
		return fmt.Errorf("hashing %s: %w", describe(object, nameIn(desired)), err)
	}
	annotate(desired, hash)
	if exists && object.GetDeletionTimestamp().IsZero() && upToDate(object, desired, hash, p.fieldOwner) {
		return nil
	}
	return p.apply(ctx, object, desired, exists)
}

func (p *Pass) apply(ctx context.Context, object client.Object, desired map[string]any, exists bool) error {
	name := nameIn(desired)
	if !object.GetDeletionTimestamp().IsZero() {
		return Waiting("Deleting", "%s is being deleted and will be created anew", describe(object, name))
	}
	options := []client.PatchOption{client.FieldOwner(p.fieldOwner)}
	verb := "Created"
	if exists {
		// With its UID it cannot be another object of the same name by the time the request arrives. Nor is anything
		// forced upon an object that was not there when we looked.
		desired["metadata"].(map[string]any)["uid"] = string(object.GetUID())
		options = append(options, client.ForceOwnership)
		verb = "Updated"
	}
	data, err := json.Marshal(desired)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, name), err)
	}
	// What the cache gave us is not part of the request, and would be mixed with the response.
	clearObject(object)
	object.SetName(name)
	object.SetNamespace(p.owner.GetNamespace())
	if err := p.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), options...); err != nil {
		return Refused(fmt.Errorf("applying %s: %w", describe(object, name), err))
	}
	p.own.add(object)
	p.Changed("%s %s", verb, describe(object, name))
	return nil
}

// Delete deletes a child if it is there and belongs to the owner. The object says which by its type and name. It
// returns whether the child is gone.
func (p *Pass) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) (gone bool, err error) {
	name := object.GetName()
	object.SetNamespace(p.owner.GetNamespace())
	if err := p.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
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

// Find fills in a child from the cache, for what depends on what is there already. If there is none, or it belongs to
// somebody else, the object stays empty.
func (p *Pass) Find(ctx context.Context, object client.Object, name string) error {
	key := types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name}
	if err := p.client.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for %s: %w", describe(object, name), err)
	}
	if !metav1.IsControlledBy(object, p.owner) {
		clearObject(object)
	}
	return nil
}

// OwnsField says whether a field of a child was last set by us, and by nobody else since.
func (p *Pass) OwnsField(object client.Object, path ...string) bool {
	owned := ownedFields(object, p.fieldOwner)
	elements := make([]any, len(path))
	for i := range path {
		elements[i] = path[i]
	}
	return owned != nil && owned.Has(fieldpath.MakePathOrDie(elements...))
}

// find gets a child from the cache, and from the server if it is not there: the cache holds only objects that have
// our label, and the name may be taken by one that has not.
func (p *Pass) find(ctx context.Context, object client.Object, name string) error {
	key := types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name}
	err := p.client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || err == nil && p.own.supersedes(object) {
		clearObject(object)
		err = p.reader.Get(ctx, key, object)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for %s: %w", describe(object, name), err)
	}
	return err
}

// Taken is the outcome when the name of a child belongs to another object. That object is watched, so that the owner
// is looked at again when it goes. Apply does this by itself; it is here for children that are not applied.
func (p *Pass) Taken(ctx context.Context, object client.Object) error {
	owner := "no controller"
	if controller := metav1.GetControllerOf(object); controller != nil {
		owner = controller.Kind + " " + controller.Name
	}
	err := fmt.Errorf("%s exists already and belongs to %s: it is left alone; delete or rename it, or give this object another name",
		describe(object, object.GetName()), owner)
	if p.bystanders != nil {
		if watchErr := p.bystanders.watch(ctx, object, p.owner); watchErr != nil {
			return errors.Join(err, watchErr)
		}
	}
	return Stalled(ReasonResourceExists, err)
}

// complete adds to a configuration what all children have.
func (p *Pass) complete(configuration any) (map[string]any, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encoding a child: %w", err)
	}
	var desired map[string]any
	if err := json.Unmarshal(data, &desired); err != nil {
		return nil, fmt.Errorf("decoding a child: %w", err)
	}
	gvk, err := apiutil.GVKForObject(p.owner, p.client.Scheme())
	if err != nil {
		return nil, err
	}
	metadata := field(desired, "metadata")
	metadata["namespace"] = p.owner.GetNamespace()
	labels := field(metadata, "labels")
	labels[LabelManagedBy] = ManagedBy
	labels[LabelKind] = p.labelKind
	labels[LabelInstance] = p.owner.GetName()
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "name": p.owner.GetName(), "uid": string(p.owner.GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}}
	return desired, nil
}

func annotate(desired map[string]any, hash string) {
	field(field(desired, "metadata"), "annotations")[AppliedAnnotation] = hash
}

// field returns the object below a name, and makes it if it is not there.
func field(object map[string]any, name string) map[string]any {
	below, ok := object[name].(map[string]any)
	if !ok {
		below = map[string]any{}
		object[name] = below
	}
	return below
}

func nameIn(desired map[string]any) string {
	name, _ := field(desired, "metadata")["name"].(string)
	return name
}
