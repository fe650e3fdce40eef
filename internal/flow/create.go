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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"
)

// create creates a child that is not in the cache. Unlike an apply, a create never changes an existing object, so no
// read is needed before. It is also cheaper for the server.
func (p *Pass) create(ctx context.Context, object client.Object, desired *desired) error {
	data, err := json.Marshal(desired.content)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, desired.name), err)
	}
	// A controller that deletes each new child is a rival, too.
	created, err := p.mayWrite(repetition{childOf: childOf{owner: p.owner.GetUID(), child: describe(object, desired.name)}, hash: desired.hash, signature: deletedChild}, "", contestWithin)
	if err != nil {
		return err
	}
	clearObject(object)
	unknown, undecodable := kjson.UnmarshalStrict(data, object)
	if undecodable != nil {
		// The server says what is wrong.
		clearObject(object)
		object.SetNamespace(p.owner.GetNamespace())
		object.SetName(desired.name)
	}
	if undecodable != nil || len(unknown) > 0 || losesFields(object, desired.content) {
		err = p.createByApply(ctx, object, desired.name, data)
	} else {
		options := []client.CreateOption{client.FieldOwner(p.fieldOwner)}
		if p.IsHidden(object) {
			options = append(options, client.DisableReadYourWritesConsistency)
		}
		err = p.write(object, desired.name, func() error { return p.client.Create(ctx, object, options...) })
	}
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
	created()
	p.Changed("Created %s", describe(object, desired.name))
	return p.UnlessHidden(object)
}

// createByApply is for configurations that the Go type cannot hold: it lacks a field, which the server must validate, or it
// drops a field with a zero value, which would never be ours. An apply would also change an existing object, so look first.
func (p *Pass) createByApply(ctx context.Context, object client.Object, name string, data []byte) error {
	existing := newLike(object)
	err := p.reader.Get(ctx, types.NamespacedName{Namespace: p.owner.GetNamespace(), Name: name}, existing)
	if err == nil {
		return apierrors.NewAlreadyExists(schema.GroupResource{}, name)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	options := []client.PatchOption{client.FieldOwner(p.fieldOwner)}
	if p.IsHidden(object) {
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	return p.write(object, name, func() error {
		return p.client.Patch(ctx, object, client.RawPatch(types.ApplyPatchType, data), options...)
	})
}

// losesFields reports whether an object that was decoded from the configuration has dropped fields of it.
func losesFields(object client.Object, configuration map[string]any) bool {
	if !hasZeroValue(configuration) {
		// Nearly always, and much cheaper to find out.
		return false
	}
	data, err := json.Marshal(object)
	if err != nil {
		return true
	}
	var decoded map[string]any
	return json.Unmarshal(data, &decoded) != nil || !hasAll(decoded, configuration)
}

// hasZeroValue reports whether a part of a configuration has a value that Go types may omit.
func hasZeroValue(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for _, part := range value {
			if hasZeroValue(part) {
				return true
			}
		}
		return len(value) == 0
	case []any:
		return len(value) == 0 || slices.ContainsFunc(value, hasZeroValue)
	case string:
		return value == ""
	case bool:
		return !value
	case float64:
		return value == 0
	default:
		return false
	}
}

// hasAll reports whether a value has all fields of another one, whatever their values are.
func hasAll(value, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		for name, part := range wanted {
			if found, has := object[name]; !has && part != nil || has && !hasAll(found, part) {
				return false
			}
		}
		return ok
	case []any:
		list, ok := value.([]any)
		if !ok || len(list) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !hasAll(list[i], wanted[i]) {
				return false
			}
		}
		return true
	default:
		return true
	}
}

// errFound means that the child exists after all.
var errFound = errors.New("it exists after all")
