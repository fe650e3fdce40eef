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
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// Apply applies the configuration of a child, and stores the result in object, which must be empty. The configuration
// is one of client-go's applyconfigurations, or any other value with the JSON of an object. Apply adds labels and the
// owner reference. If the child already matches, nothing is written.
//
// Apply does not change an object of that name that another owner controls: the outcome is Stalled, until it is gone.
func (p *Pass) Apply(ctx context.Context, object client.Object, configuration any) error {
	complete, err := p.complete(configuration)
	if err != nil {
		return err
	}
	return p.applyTo(ctx, object, complete.name, func() (*desired, error) { return complete, nil })
}

// ApplyTo is Apply for a configuration that depends on the existing child. The function is called when object holds the
// child that will be changed, or is empty because the child is to be created. The cache does not hold a child whose label
// was removed, so the server may refuse to create it; the function is then called again.
func (p *Pass) ApplyTo(ctx context.Context, object client.Object, name string, configuration func() (any, error)) error {
	return p.applyTo(ctx, object, name, func() (*desired, error) {
		made, err := configuration()
		if err != nil {
			return nil, err
		}
		return p.complete(made)
	})
}

func (p *Pass) applyTo(ctx context.Context, object client.Object, name string, configuration func() (*desired, error)) error {
	if err := p.find(ctx, object, name); client.IgnoreNotFound(err) != nil {
		return err
	}
	if object.GetUID() == "" {
		desired, err := configuration()
		if err != nil {
			return err
		}
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
	desired, err := configuration()
	if err != nil {
		return err
	}
	if !object.GetDeletionTimestamp().IsZero() {
		return p.awaitGone(ctx, object, reasonDeleting, "%s is being deleted and will be recreated", describe(object, desired.name))
	}
	if cause := stuck(object, desired); cause != nil {
		return p.replace(ctx, object, desired, repetition{childOf: p.childOf(object), hash: desired.hash, signature: cause.Error()}, cause)
	}
	found := p.drift(object, desired)
	isCurrent := desired.isAppliedTo(object)
	if isCurrent && found.none() && !adopting {
		return p.UnlessHidden(object)
	}
	return p.apply(ctx, object, desired, found, applyReason{adopting: adopting, repairing: !adopting && (isCurrent || p.hasLostHash(object))})
}

// hasLostHash reports whether AppliedAnnotation is not ours: another writer has changed or removed it, so it does not tell whether
// the configuration has changed, or a correction was not finished.
func (p *Pass) hasLostHash(object client.Object) bool {
	ours := ownershipOf(object, appliedBy(p.fieldOwner, object)).ours
	return ours != nil && !ours.Has(hashPath)
}

var (
	hashPath    = fieldpath.MakePathOrDie("metadata", "annotations", AppliedAnnotation)
	appliedHash = fieldpath.NewSet(hashPath)
)

// applyReason is why an existing child is applied: it is adopted, it has drifted, or its configuration has changed.
type applyReason struct{ adopting, repairing bool }

func (p *Pass) apply(ctx context.Context, object client.Object, desired *desired, found drift, reason applyReason) error {
	what := describe(object, desired.name)
	change := "Updated " + what
	if reason.adopting {
		change = "Adopted " + what
	}
	if !reason.adopting && (reason.repairing || p.mustTakeOver(object, found)) {
		// The cache holds only a part of the managed fields.
		uid := object.GetUID()
		if err := p.refresh(ctx, object); err != nil {
			return err
		}
		if object.GetUID() != uid || !metav1.IsControlledBy(object, p.owner) {
			// The next pass decides whether it may be adopted.
			return WaitingFor(firstRetry, "Recreating", "%s was replaced by another object", what)
		}
		found = p.drift(object, desired)
	}
	if reason.repairing && found.none() {
		// Another writer was faster, or the cache was behind.
		return nil
	}
	write := repetition{childOf: p.childOf(object), hash: desired.hash, signature: found.signature(), values: found.values(object)}
	fields := found.describe(object, p.fieldOwner)
	written, err := p.mayWrite(write, fields, contestWithin)
	if err != nil {
		return err
	}
	if reason.repairing {
		change = fmt.Sprintf("Restored %s: %s", what, fields)
	}
	if reason.adopting && !p.wasChild(object) {
		// To take over the fields of an object makes it a former child, so it must not happen if the rest is refused.
		if err := p.mayBecome(ctx, object, desired); err != nil {
			return Refused(err)
		}
	}
	onlyMoved, injected := len(found.moved) > 0, found.injected
	// The second round is for children whose managed fields were cleared: only the first apply makes the server record
	// which fields are not ours.
	for range 2 {
		if p.mustTakeOver(object, found) {
			if err := p.takeOver(ctx, object, desired, found); err != nil {
				return err
			}
		}
		if err := p.patch(ctx, object, desired); err != nil {
			return p.replaceIfImmutable(ctx, object, desired, write, err)
		}
		if found = p.drift(object, desired); len(found.added) == 0 {
			break
		}
	}
	if err := p.UnlessHidden(object); err != nil {
		return err
	}
	if len(found.moved) > 0 {
		p.shapes.keepOrder(object.GetUID(), desired.hash)
		if onlyMoved {
			return nil // nothing was restored
		}
	}
	written()
	change += p.missing(object, desired, injected)
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
	options := []client.PatchOption{client.FieldOwner(p.fieldOwner), client.ForceOwnership}
	if !p.isCached(object) {
		// The caches may not hold it after the write either.
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	if err := p.write(answer, desired.name, func() error {
		return p.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, data), options...)
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

// Applied is Apply without writes, for children that must wait: it stores the existing child in object, like Find,
// and reports whether it matches the configuration.
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

// write sends a request that changes a child, and stores the response, which the watch will also deliver.
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

// Find reads a child from the cache. If there is none that the owner controls or may adopt, the object stays empty. If the
// configuration of a child depends on the existing one, use ApplyTo: the cache may not hold it.
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

// OwnsField reports whether this controller was the last to set a field of a child. The path consists of field names,
// and of keys of list items from fieldpath.KeyByFields.
func (p *Pass) OwnsField(object client.Object, path ...any) bool {
	owned := ownershipOf(object, entriesOf(p.fieldOwner)).ours
	return owned != nil && owned.Has(fieldpath.MakePathOrDie(path...))
}

// WritersOf names the managers, other than us, that have set a field of a child that is not applied; empty if there are none.
// The child must be from the server: caches drop the entries of managers that have set only metadata.
func (p *Pass) WritersOf(live client.Object, path ...any) string {
	return writersOf(live, entriesOf(p.fieldOwner), fieldpath.MakePathOrDie(path...))
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

// find reads a child from the cache, or from the server if the cache lags behind our own writes.
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
