// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnedIndex is the index of children that Pass.Owned uses.
const OwnedIndex = "metadata.controller"

// OwnedKeys returns the keys of a child in OwnedIndex: the UID of the object that controls it.
func OwnedKeys(object client.Object) []string {
	if controller := metav1.GetControllerOf(object); controller != nil {
		return []string{string(controller.UID)}
	}
	return nil
}

// IndexOwned makes Pass.Owned work for a type of child. At most one kind may call it for each type.
func IndexOwned(mgr ctrl.Manager, object client.Object) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), object, OwnedIndex, OwnedKeys); err != nil {
		return fmt.Errorf("indexing %T by its controller: %w", object, err)
	}
	return nil
}

// Owned fills the list with all children of its type, regardless of their names. It is for children whose names can
// change: after a crash, or a second change during the first, some children are known nowhere else.
func (p *Pass) Owned(ctx context.Context, list client.ObjectList) error {
	err := p.client.List(ctx, list, client.InNamespace(p.owner.GetNamespace()), client.MatchingFields{OwnedIndex: string(p.owner.GetUID())})
	if err != nil {
		return fmt.Errorf("listing children: %w", err)
	}
	return nil
}
