// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
// A child of that name that another owner controls is left alone: the outcome is Stalled, until it is gone.
func (p *Pass) Apply(ctx context.Context, object client.Object, configuration any) error {
	desired, err := p.complete(configuration)
	if err != nil {
		return err
	}
	if err := p.find(ctx, object, desired.name); client.IgnoreNotFound(err) != nil {
		return err
	}
	if object.GetUID() == "" {
		if err := p.create(ctx, object, desired); !errors.Is(err, errFound) {
			return err
		}
	}
	adopting := !metav1.IsControlledBy(object, p.owner)
	if adopting {
		if err := p.adopt(ctx, object); err != nil {
			return err
		}
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return Waiting("Deleting", "%s is being deleted and will be recreated", describe(object, desired.name))
	}
	if cause := stuck(object, desired); cause != nil {
		return p.replace(ctx, object, desired, cause)
	}
	found := p.drift(object, desired)
	isCurrent := desired.isAppliedTo(object)
	if isCurrent && found.none() && !adopting {
		p.contests.settled(object.GetUID(), p.now)
		return nil
	}
	return p.apply(ctx, object, desired, found, applyReason{adopting: adopting, repairing: isCurrent && !adopting})
}

// applyReason is why an existing child is applied: it is adopted, it has drifted, or the owner asks for something else.
type applyReason struct{ adopting, repairing bool }

func (p *Pass) apply(ctx context.Context, object client.Object, desired *desired, found drift, reason applyReason) error {
	what := describe(object, desired.name)
	change := "Updated " + what
	if reason.adopting {
		change = "Adopted " + what
	}
	if !reason.adopting && (reason.repairing || p.mustTakeOver(object, found)) {
		// The cache holds only a part of the managed fields.
		if err := p.refresh(ctx, object); err != nil {
			return err
		}
		found = p.drift(object, desired)
	}
	if reason.repairing {
		if found.none() {
			// Another writer was faster, or the cache was behind.
			return nil
		}
		fields := found.describe(object, p.fieldOwner)
		if err := p.contests.note(object.GetUID(), what, found.signature(), fields, p.now); err != nil {
			return err
		}
		change = fmt.Sprintf("Restored %s: %s", what, fields)
	}
	// The second round is for children whose managed fields were cleared: only then the first one makes the server find
	// out which fields are not ours.
	for range 2 {
		if p.mustTakeOver(object, found) {
			if err := p.takeOver(ctx, object, desired, found); err != nil {
				return err
			}
		}
		if err := p.patch(ctx, object, desired); err != nil {
			return p.replaceIfImmutable(ctx, object, desired, err)
		}
		if found = p.drift(object, desired); len(found.added) == 0 {
			break
		}
	}
	if reason.repairing {
		p.repairs = append(p.repairs, change)
	} else {
		p.Changed("%s", change)
	}
	return nil
}

// patch applies the configuration, and fills in the object with the answer.
func (p *Pass) patch(ctx context.Context, object client.Object, desired *desired) error {
	// With its UID it cannot be another object of the same name by the time the request arrives.
	metadata := field(desired.content, "metadata")
	metadata["uid"] = string(object.GetUID())
	data, err := json.Marshal(desired.content)
	delete(metadata, "uid")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, desired.name), err)
	}
	answer := newLike(object)
	answer.SetName(desired.name)
	answer.SetNamespace(p.owner.GetNamespace())
	if err := p.write(answer, desired.name, func() error {
		return p.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(p.fieldOwner), client.ForceOwnership)
	}); err != nil {
		return fmt.Errorf("applying %s: %w", describe(object, desired.name), err)
	}
	setObject(object, answer)
	return nil
}

// refresh reads the object from the server.
func (p *Pass) refresh(ctx context.Context, object client.Object) error {
	key := types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: object.GetName()}
	clearObject(object)
	err := p.reader.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err):
		return WaitingFor(firstRetry, "Recreating", "%s has just been deleted and will be recreated", describe(object, key.Name))
	case err != nil:
		return fmt.Errorf("reading %s: %w", describe(object, key.Name), err)
	}
	return nil
}

// create makes a child that is not there, as far as the cache knows. Creating instead of applying makes sure that an
// existing object is not touched, without a request before; and it costs the server less.
func (p *Pass) create(ctx context.Context, object client.Object, desired *desired) error {
	data, err := json.Marshal(desired.content)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, desired.name), err)
	}
	clearObject(object)
	unknown, err := kjson.UnmarshalStrict(data, object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, desired.name), err)
	}
	err = p.write(object, desired.name, func() error {
		if len(unknown) > 0 {
			// The type does not have all of it, so it is the server that has to say what it thinks of the rest.
			return p.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), client.FieldOwner(p.fieldOwner))
		}
		return p.client.Create(ctx, object, client.FieldOwner(p.fieldOwner))
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		// The cache lags behind, or does not select the object because it lacks our label.
		clearObject(object)
		object.SetName(desired.name)
		if err := p.refresh(ctx, object); err != nil {
			return err
		}
		return errFound
	case err != nil:
		return Refused(fmt.Errorf("creating %s: %w", describe(object, desired.name), err))
	}
	p.Changed("Created %s", describe(object, desired.name))
	return nil
}

// errFound says that a child was there after all.
var errFound = errors.New("it exists after all")

// Applied is Apply without the writing, for children whose turn has not come: it fills in object with what is there, as Find
// does, and says whether that is as the configuration says.
func (p *Pass) Applied(ctx context.Context, object client.Object, configuration any) (bool, error) {
	desired, err := p.complete(configuration)
	if err != nil {
		return false, err
	}
	if err := p.Find(ctx, object, desired.name); err != nil {
		return false, err
	}
	return metav1.IsControlledBy(object, p.owner) && object.GetDeletionTimestamp().IsZero() &&
		desired.isAppliedTo(object) && stuck(object, desired) == nil && p.drift(object, desired).none(), nil
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
	key := client.ObjectKeyFromObject(object)
	mayExist := p.changedSpec || object.GetUID() != ""
	err = p.client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) && mayExist {
		// The cache does not hold a child whose label was removed. Only a new spec can make a child superfluous, so this
		// is the time to ask the server. The cache will not report the deletion either, so it must not be waited for.
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

// Find fills in a child from the cache, for what depends on what is there already. If there is none, or none that is ours
// or would be adopted, the object stays empty.
func (p *Pass) Find(ctx context.Context, object client.Object, name string) error {
	key := types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name}
	if err := p.client.Get(ctx, key, object); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking for %s: %w", describe(object, name), err)
	}
	if !metav1.IsControlledBy(object, p.owner) && !p.isAdoptable(object) {
		clearObject(object)
	}
	return nil
}

// isCached reports whether the caches hold a child. Those that they do not hold must be written without waiting until the cache
// has seen that, which would not end.
func isCached(object client.Object) bool { return object.GetLabels()[LabelManagedBy] == ManagedBy }

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

// OwnsField reports whether a field of a child was last set by us, and not by another manager since.
// The path consists of names of fields, and of the keys of list items as fieldpath.KeyByFields makes them.
func (p *Pass) OwnsField(object client.Object, path ...any) bool {
	owned := ownershipOf(object, entriesOf(p.fieldOwner)).ours
	return owned != nil && owned.Has(fieldpath.MakePathOrDie(path...))
}

// ForeignFields returns the fields outside of metadata and status that other managers have set, that are not ours, and
// that they have no right to: the name of each field without the keys of list items, and the manager. It is for children
// that are not applied.
func (p *Pass) ForeignFields(object client.Object, kind string) map[string]string {
	isForeign := func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != p.fieldOwner && ConcernsSpec(entry)
	}
	if !slices.ContainsFunc(object.GetManagedFields(), isForeign) {
		// Nearly always, and much cheaper to find out.
		return nil
	}
	owned := ownershipOf(object, entriesOf(p.fieldOwner))
	found := map[string]string{}
	for _, other := range owned.others {
		for path := range other.added(kind, owned.ours).All() {
			found[fieldName(path)] = other.name
		}
	}
	return found
}

// MayRestore is asked before a child that is not applied is corrected. The error is the outcome if that has to wait
// because another writer undoes it again and again.
func (p *Pass) MayRestore(object client.Object, fields string) error {
	return p.contests.note(object.GetUID(), describe(object, object.GetName()), fields, fields, p.now)
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

// AppliedAnnotation holds, on each child, a hash of what was last applied to it. If it is that of the configuration, the
// owner asks for nothing else than before.
const AppliedAnnotation = "opdock.dev/applied"

// desired is a child as it should be.
type desired struct {
	content                map[string]any
	apiVersion, kind, name string
	// hash is that of the content without the annotation that holds it.
	hash string
}

// isAppliedTo reports whether the child bears the hash of what it should be, so what the owner asks for has not changed.
func (d *desired) isAppliedTo(live metav1.Object) bool {
	return live.GetAnnotations()[AppliedAnnotation] == d.hash
}

// complete adds to a configuration what all children have.
func (p *Pass) complete(configuration any) (*desired, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("encoding a child: %w", err)
	}
	var content map[string]any
	if err := json.Unmarshal(data, &content); err != nil {
		return nil, fmt.Errorf("decoding a child: %w", err)
	}
	gvk, err := apiutil.GVKForObject(p.owner, p.client.Scheme())
	if err != nil {
		return nil, err
	}
	metadata := field(content, "metadata")
	metadata["namespace"] = p.owner.GetNamespace()
	labels := field(metadata, "labels")
	for name, value := range p.labels() {
		labels[name] = value
	}
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "name": p.owner.GetName(), "uid": string(p.owner.GetUID()),
		"controller": true, "blockOwnerDeletion": true,
	}}
	result := &desired{content: content}
	result.apiVersion, _ = content["apiVersion"].(string)
	result.kind, _ = content["kind"].(string)
	result.name, _ = metadata["name"].(string)
	if data, err = json.Marshal(content); err != nil {
		return nil, fmt.Errorf("encoding a child: %w", err)
	}
	// It is only ever compared with itself, so a few bytes are enough.
	sum := sha256.Sum256(data)
	result.hash = hex.EncodeToString(sum[:8])
	field(metadata, "annotations")[AppliedAnnotation] = result.hash
	return result, nil
}

// labels are those that every child has.
func (p *Pass) labels() map[string]string {
	return map[string]string{LabelManagedBy: ManagedBy, LabelKind: p.labelKind, LabelInstance: p.owner.GetName()}
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
