// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replaceIfImmutable deletes a child that cannot become what it should be because the server does not let a field change,
// if nothing is lost by it. It is created again once it is gone.
func (p *Pass) replaceIfImmutable(ctx context.Context, object client.Object, desired *desired, cause error) error {
	if !isImmutable(cause) || !replaceable[desired.kind] {
		return Refused(cause)
	}
	// Nothing is deleted that could not be created again. A name that is taken is the last thing the server checks.
	if err := p.rehearse(ctx, object, desired); !apierrors.IsAlreadyExists(err) {
		return Refused(errors.Join(cause, err))
	}
	err := p.client.Delete(ctx, object, client.Preconditions{UID: ptr.To(object.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replacing %s: %w", describe(object, desired.name), err)
	}
	p.Changed("Deleted %s to recreate it", describe(object, desired.name))
	return Waiting("Replacing", "%s is immutable and is recreated: %v", describe(object, desired.name), cause)
}

// rehearse asks the server what it would answer to the creation of a child.
func (p *Pass) rehearse(ctx context.Context, object client.Object, desired *desired) error {
	data, err := json.Marshal(desired.content)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, desired.name), err)
	}
	fresh := newLike(object)
	if err := json.Unmarshal(data, fresh); err != nil {
		return fmt.Errorf("decoding %s: %w", describe(object, desired.name), err)
	}
	return p.client.Create(ctx, fresh, client.FieldOwner(p.fieldOwner), client.DryRunAll)
}

// replaceable are the kinds of children that hold no state and run nothing.
var replaceable = map[string]bool{
	"ConfigMap": true, "Service": true, "Ingress": true, "NetworkPolicy": true, "PodDisruptionBudget": true, "HorizontalPodAutoscaler": true,
}

// isImmutable reports whether the server refused a change of a field that cannot be changed. It has no code of its own for
// that.
func isImmutable(err error) bool {
	return apierrors.IsInvalid(err) && (strings.Contains(err.Error(), "immutable") || strings.Contains(err.Error(), "may not change once set"))
}
