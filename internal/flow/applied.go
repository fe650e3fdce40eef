// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// AppliedAnnotation holds, on each child, a hash of what was last applied to it.
const AppliedAnnotation = "opdock.dev/applied"

// How a pass knows, without asking the server, that applying a configuration would change nothing:
//
//   - The hash in AppliedAnnotation is that of the configuration. So nothing that we want has changed since it was
//     applied, and in particular nothing was taken out of it.
//   - The server still counts us as the owner of every field in it. Whoever gives a field another value takes its
//     ownership from us, by the rules of server-side apply; so all the values are still there.
//
// Comparing values would not do: the server fills in defaults, also within lists that count as one value.

// Applied is Apply without the writing, for children whose turn has not come: it fills in object with what is there, as Find
// does, and says whether that is as the configuration says.
func (p *Pass) Applied(ctx context.Context, object client.Object, configuration any) (bool, error) {
	desired, err := p.complete(configuration)
	if err != nil {
		return false, err
	}
	if err := p.Find(ctx, object, nameIn(desired)); err != nil {
		return false, err
	}
	hash, err := hashOf(desired)
	if err != nil {
		return false, fmt.Errorf("hashing %s: %w", describe(object, nameIn(desired)), err)
	}
	annotate(desired, hash)
	return object.GetUID() != "" && object.GetDeletionTimestamp().IsZero() && upToDate(object, desired, hash, p.fieldOwner), nil
}

// upToDate says whether applying the configuration as the field owner would change nothing.
func upToDate(live metav1.Object, configuration map[string]any, hash, owner string) bool {
	if live.GetAnnotations()[AppliedAnnotation] != hash {
		return false
	}
	owned := ownedFields(live, owner)
	return owned != nil && ownsAll(owned, configuration)
}

// ownedFields are the fields that were last set by the field owner, when it created or applied; nil if there are none.
func ownedFields(live metav1.Object, owner string) *fieldpath.Set {
	var all *fieldpath.Set
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != owner || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var owned fieldpath.Set
		if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil
		}
		if all == nil {
			all = &owned
		} else {
			all = all.Union(&owned)
		}
	}
	return all
}

// identity are the fields that say which object is meant. Nobody owns them.
var identity = map[string]bool{"apiVersion": true, "kind": true, "metadata.name": true, "metadata.namespace": true, "metadata.uid": true}

func ownsAll(owned *fieldpath.Set, configuration map[string]any) bool {
	for name, value := range configuration {
		if identity[name] {
			continue
		}
		if metadata, ok := value.(map[string]any); ok && name == "metadata" {
			kept := make(map[string]any, len(metadata))
			for name, value := range metadata {
				if !identity["metadata."+name] {
					kept[name] = value
				}
			}
			value = kept
		}
		if !ownsField(owned, name, value) {
			return false
		}
	}
	return true
}

func ownsField(owned *fieldpath.Set, name string, value any) bool {
	element := fieldpath.PathElement{FieldName: &name}
	return owns(owned, element, value)
}

// owns says whether the set contains the element, or everything that the value has below it.
func owns(owned *fieldpath.Set, element fieldpath.PathElement, value any) bool {
	if value == nil {
		// Something that must not be there, which nobody can own.
		return true
	}
	below, has := owned.Children.Get(element)
	if !has {
		// A value without parts, or one that is owned as a whole.
		return owned.Members.Has(element)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, part := range value {
			if !ownsField(below, name, part) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range value {
			element, found := elementOf(below, item)
			if !found || !owns(below, element, item) {
				return false
			}
		}
		return true
	default:
		return false
	}
}

// elementOf finds the element of a set that stands for an item of a list: by its keys if it is an object, by its
// value otherwise.
func elementOf(items *fieldpath.Set, item any) (found fieldpath.PathElement, ok bool) {
	look := func(element fieldpath.PathElement) {
		if !ok && standsFor(element, item) {
			found, ok = element, true
		}
	}
	items.Children.Iterate(look)
	items.Members.Iterate(look)
	return found, ok
}

func standsFor(element fieldpath.PathElement, item any) bool {
	object, isObject := item.(map[string]any)
	if !isObject {
		return element.Value != nil && fmt.Sprint((*element.Value).Unstructured()) == fmt.Sprint(item)
	}
	if element.Key == nil {
		return false
	}
	for _, key := range *element.Key {
		// A key that the item leaves out has been filled in by the server, such as the protocol of a port.
		if value, has := object[key.Name]; has && fmt.Sprint(value) != fmt.Sprint(key.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// hashOf is short, because it is only ever compared with itself.
func hashOf(configuration map[string]any) (string, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}
