// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mayBecome returns why a foreign object cannot become a child. The rehearsal of an adoption also drops fields that have no manager,
// which an apply keeps, so only an apply can tell whether an object that can be replaced must be.
func (p *Pass) mayBecome(ctx context.Context, object client.Object, desired *desired) error {
	err := p.rehearseAdoption(ctx, object, desired)
	if !isImmutable(err) || !replaceable[desired.kind] {
		return err
	}
	if refused := p.rehearse(ctx, object, desired); !apierrors.IsAlreadyExists(refused) {
		return errors.Join(err, refused)
	}
	return nil
}

// rehearseAdoption asks the server, by a dry run, whether it would accept a foreign object as the child that it is to become.
// An adoption takes several requests, and the last one can be refused. The rehearsal is one request for the final state: an
// apply without the requests before it would keep the fields of the old manager, which the server may refuse.
func (p *Pass) rehearseAdoption(ctx context.Context, object client.Object, desired *desired) error {
	patch, err := finalState(object, desired)
	if err != nil {
		return err
	}
	answer := newLike(object)
	answer.SetName(desired.name)
	answer.SetNamespace(p.owner.GetNamespace())
	// The caches never have the result of a dry run.
	err = p.client.Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch),
		client.FieldOwner(p.fieldOwner), client.DryRunAll, client.DisableReadYourWritesConsistency)
	if err != nil {
		return fmt.Errorf("adopting %s: %w", describe(object, desired.name), err)
	}
	return nil
}

// finalState returns a JSON patch that makes an object match a configuration.
func finalState(object client.Object, desired *desired) ([]byte, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", describe(object, desired.name), err)
	}
	var live map[string]any
	if err := json.Unmarshal(data, &live); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", describe(object, desired.name), err)
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value,omitempty"`
	}
	// The UID is a precondition: it must not be another object by the time the request arrives.
	steps := []operation{{"replace", "/metadata/uid", object.GetUID()}}
	for _, name := range []string{"labels", "annotations"} {
		all := map[string]any{}
		maps.Copy(all, field(field(live, "metadata"), name))
		maps.Copy(all, field(field(desired.content, "metadata"), name))
		steps = append(steps, operation{"add", "/metadata/" + name, all})
	}
	for name := range live {
		if _, wanted := desired.content[name]; !wanted && !isCommon(name) {
			steps = append(steps, operation{Op: "remove", Path: "/" + name})
		}
	}
	for name, value := range desired.content {
		if !isCommon(name) && value != nil {
			steps = append(steps, operation{"add", "/" + name, value})
		}
	}
	return json.Marshal(steps)
}

// isCommon reports whether a field of an object is none of what its kind configures.
func isCommon(name string) bool {
	switch name {
	case "apiVersion", "kind", "metadata", "status":
		return true
	default:
		return false
	}
}
