// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kjson "sigs.k8s.io/json"
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
	if !exists {
		if err := p.create(ctx, object, desired); !errors.Is(err, errFound) {
			return err
		}
	}
	if object.GetDeletionTimestamp().IsZero() && upToDate(object, desired, hash, p.fieldOwner) {
		return nil
	}
	return p.apply(ctx, object, desired)
}

func (p *Pass) apply(ctx context.Context, object client.Object, desired map[string]any) error {
	name := nameIn(desired)
	if !object.GetDeletionTimestamp().IsZero() {
		return Waiting("Deleting", "%s is being deleted and will be created anew", describe(object, name))
	}
	if err := p.takeOverFields(ctx, object); err != nil {
		return err
	}
	// With its UID it cannot be another object of the same name by the time the request arrives.
	desired["metadata"].(map[string]any)["uid"] = string(object.GetUID())
	data, err := json.Marshal(desired)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, name), err)
	}
	// What the cache gave us is not part of the request, and would be mixed with the response.
	clearObject(object)
	object.SetName(name)
	object.SetNamespace(p.owner.GetNamespace())
	if err := p.write(object, name, func() error {
		return p.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(p.fieldOwner), client.ForceOwnership)
	}); err != nil {
		return Refused(fmt.Errorf("applying %s: %w", describe(object, name), err))
	}
	p.Changed("Updated %s", describe(object, name))
	return nil
}

// create makes a child that is not there, as far as the cache knows. Creating and not applying makes sure that an object
// that is there nevertheless is not touched, without a look before; and it costs the server less.
func (p *Pass) create(ctx context.Context, object client.Object, desired map[string]any) error {
	name := nameIn(desired)
	data, err := json.Marshal(desired)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, name), err)
	}
	clearObject(object)
	unknown, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, name), err)
	}
	err = p.write(object, name, func() error {
		if len(unknown) > 0 {
			// The type does not have all of it, so it is the server that has to say what it thinks of the rest.
			return p.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(p.fieldOwner))
		}
		return p.client.Create(ctx, object, client.FieldOwner(p.fieldOwner))
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		return p.inTheWay(ctx, object, name, err)
	case err != nil:
		return Refused(fmt.Errorf("creating %s: %w", describe(object, name), err))
	}
	p.Changed("Created %s", describe(object, name))
	return nil
}

// inTheWay finds out whose the object is that has the name of a child. If it is ours, the cache lags behind, or somebody has
// taken away the label by which the cache selects.
func (p *Pass) inTheWay(ctx context.Context, object client.Object, name string, cause error) error {
	clearObject(object)
	if err := p.reader.Get(ctx, types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name}, object); err != nil {
		return fmt.Errorf("looking for %s: %w", describe(object, name), errors.Join(err, cause))
	}
	if !metav1.IsControlledBy(object, p.owner) {
		return p.Taken(ctx, object)
	}
	return errFound
}

// errFound says that a child was there after all.
var errFound = errors.New("it is there after all")

// takeOverFields makes the fields with which a child was created count as applied. Only then are those removed that
// are not in a later configuration.
func (p *Pass) takeOverFields(ctx context.Context, object client.Object) error {
	if !slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == p.fieldOwner && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
	}) {
		return nil
	}
	// The cache holds only our own part of what the patch replaces.
	live := newLike(object)
	if err := p.reader.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
		return fmt.Errorf("looking for %s: %w", describe(object, object.GetName()), err)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(p.fieldOwner), p.fieldOwner)
	if err != nil || len(patch) == 0 {
		return err
	}
	if err := p.write(live, live.GetName(), func() error { return p.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch)) }); err != nil {
		return fmt.Errorf("taking over the fields of %s: %w", describe(object, object.GetName()), err)
	}
	return nil
}

// write makes a request that changes a child and fills it in with the answer, which the watch will bring as well.
func (p *Pass) write(child client.Object, name string, request func() error) error {
	var answer client.Object
	done := p.own.begin(child, types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name})
	defer func() { done(answer) }() // even if the request panics, which controller-runtime survives
	if err := request(); err != nil {
		return err
	}
	answer = child
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

// find gets a child from the cache, and from the server if the cache lags behind what we have written.
func (p *Pass) find(ctx context.Context, object client.Object, name string) error {
	key := types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name}
	err := p.client.Get(ctx, key, object)
	if err == nil && p.own.supersedes(object) {
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
