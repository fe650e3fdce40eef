// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"maps"
	"slices"

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

// patch is like create, for a change of an object. One that has lost the label may be changed without it. hidden is also the
// outcome if admission changes another label of the fleet, which would be restored again and again.
func (r *Reconciler) patch(ctx context.Context, s *scope, object client.Object, patch client.Patch) (hidden, err error) {
	written := maps.Clone(object.GetLabels()) // the answer may be decoded into the same map
	options := &client.PatchOptions{FieldManager: string(fieldOwner), DisableReadYourWritesConsistency: s.pass.IsHidden(object)}
	if err := r.Client.Patch(ctx, object, patch, options); err != nil {
		return nil, err
	}
	if written[flow.LabelManagedBy] == flow.ManagedBy {
		if hidden := s.pass.UnlessHidden(object); hidden != nil {
			return hidden, nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if isReserved(name) && name != flow.LabelManagedBy && object.GetLabels()[name] != written[name] {
			return flow.LabelChanged(object, name, written[name]), nil
		}
	}
	return nil, nil
}
