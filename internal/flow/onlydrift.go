// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// HasOnlyDrifted reports whether a child that Applied has found was applied with this very configuration, so Apply would
// only correct what other writers have changed since, which may be the owner reference or the hash of the configuration.
func (p *Pass) HasOnlyDrifted(object client.Object, configuration any) (bool, error) {
	desired, err := p.complete(configuration)
	if err != nil {
		return false, err
	}
	hasDrifted := func() bool {
		if !metav1.IsControlledBy(object, p.owner) {
			return p.isAdoptable(object)
		}
		return !p.drift(object, desired).none()
	}
	isSame := func() bool {
		return desired.isAppliedTo(object) || p.hasLostHash(object) && p.isStillConfigured(object, desired)
	}
	return object.GetUID() != "" && object.GetDeletionTimestamp().IsZero() && stuck(object, desired) == nil && isSame() && hasDrifted(), nil
}

// isStillConfigured tells, without the hash of its configuration, whether a child was applied with this one: the fields that
// are still ours have its values. If a field of its spec is missing in the child, another writer may have removed it, or it
// is new. It counts as new then, because a new configuration must not be applied before its time.
func (p *Pass) isStillConfigured(object client.Object, desired *desired) bool {
	isOurs := appliedBy(p.fieldOwner, object)
	ours := ownershipOf(object, isOurs).ours
	if ours == nil {
		return false
	}
	wanted := newLike(object)
	if data, err := json.Marshal(desired.content); err != nil || json.Unmarshal(data, wanted) != nil {
		return false
	}
	difference := p.shapes.compare(contentOf(object, desired), contentOf(wanted, desired))
	if difference == nil {
		return false
	}
	changed := difference.Modified
	if slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return isOurs(&entry) && entry.Operation == metav1.ManagedFieldsOperationApply
	}) {
		// After a create, the server's defaults are ours as well, and the configuration does not have them.
		changed = changed.Union(difference.Removed)
	}
	return changed.Intersection(ours).Difference(appliedHash).Empty() && difference.Added.RecursiveDifference(notSpec).Empty()
}

// contentOf returns an object as JSON, without what no configuration has. It is nil if the object cannot be encoded.
func contentOf(object client.Object, desired *desired) map[string]any {
	var content map[string]any
	if data, err := json.Marshal(object); err != nil || json.Unmarshal(data, &content) != nil {
		return nil
	}
	content["apiVersion"], content["kind"] = desired.apiVersion, desired.kind
	delete(content, "status")
	delete(field(content, "metadata"), "managedFields")
	delete(field(content, "metadata"), "creationTimestamp")
	return content
}

// compare returns what changes from one object to another; nil if their type is unknown.
func (s *shapes) compare(from, to map[string]any) *typed.Comparison {
	// The last one treats every list as atomic, which the managed fields do not.
	converters := s.converters()
	for _, converter := range converters[:len(converters)-1] {
		before, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: from})
		if err != nil {
			continue
		}
		after, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: to})
		if err != nil {
			continue
		}
		if difference, err := before.Compare(after); err == nil {
			return difference
		}
	}
	return nil
}
