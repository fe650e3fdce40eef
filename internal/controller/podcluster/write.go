// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/flow"
)

// create creates an object. hidden is the outcome if admission changes the label by which the cache selects it. Then reads
// do not wait for the next such object, which the cache would never get.
func (r *Reconciler) create(ctx context.Context, s *scope, object client.Object) (hidden, err error) {
	options := &client.CreateOptions{FieldManager: string(fieldOwner), DisableReadYourWritesConsistency: s.pass.IsHidden(object)}
	if err := r.Client.Create(ctx, object, options); err != nil {
		return nil, err
	}
	return s.pass.UnlessHidden(object), nil
}

// patch is like create, for a change of an object. One that has lost the label may be changed without it.
func (r *Reconciler) patch(ctx context.Context, s *scope, object client.Object, patch client.Patch) (hidden, err error) {
	isLabelled := object.GetLabels()[flow.LabelManagedBy] == flow.ManagedBy
	options := &client.PatchOptions{FieldManager: string(fieldOwner), DisableReadYourWritesConsistency: s.pass.IsHidden(object)}
	if err := r.Client.Patch(ctx, object, patch, options); err != nil || !isLabelled {
		return nil, err
	}
	return s.pass.UnlessHidden(object), nil
}
