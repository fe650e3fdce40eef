// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnedIndex is the index of children that Pass.Owned uses.
const OwnedIndex = "metadata.controller"

// OwnedKeys returns the keys of a child of a kind in OwnedIndex: the UID of the object that controls it, or if there is none, the
// owner that its labels name. Objects of other kinds have no keys: each would take almost 1 kB, and there can be thousands of
// Deployments of AppServices for each one of a Robot.
func OwnedKeys(kind string) client.IndexerFunc {
	label := strings.ToLower(kind)
	return func(object client.Object) []string {
		labels := object.GetLabels()
		labeled := labels[LabelManagedBy] == ManagedBy && labels[LabelKind] == label
		switch controller := metav1.GetControllerOfNoCopy(object); {
		case controller != nil && (controller.Kind == kind || labeled): // users may have edited the reference or the labels
			return []string{string(controller.UID)}
		case controller == nil && labeled:
			return []string{orphanKey(label, labels[LabelInstance])}
		}
		return nil
	}
}

func orphanKey(kind, instance string) string { return "orphan/" + kind + "/" + instance }

// IndexOwned makes Pass.Owned work for a kind and a type of child. At most one kind may call it for each type.
func IndexOwned(mgr ctrl.Manager, kind string, object client.Object) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), object, OwnedIndex, OwnedKeys(kind)); err != nil {
		return fmt.Errorf("indexing %T by its controller: %w", object, err)
	}
	return nil
}

// Owned fills the list with all children of its type, regardless of their names. It is for children whose names can
// change: after a crash, or a second change during the first, some children are known nowhere else.
//
// It includes children that have lost their owner reference, unless the owner is being deleted, which may have released them. Copies
// that users have made of children have the same labels, so only the managed fields tell which ones were children.
func (p *Pass) Owned(ctx context.Context, list client.ObjectList) error {
	if err := p.listOwned(ctx, list, string(p.owner.GetUID())); err != nil || !p.owner.GetDeletionTimestamp().IsZero() {
		return err
	}
	orphans := reflect.New(reflect.TypeOf(list).Elem()).Interface().(client.ObjectList)
	if err := p.listOwned(ctx, orphans, orphanKey(p.labelKind, p.owner.GetName())); err != nil || meta.LenList(orphans) == 0 {
		return err
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading a list of children: %w", err)
	}
	more, err := meta.ExtractList(orphans)
	if err != nil {
		return fmt.Errorf("reading a list of children: %w", err)
	}
	for _, orphan := range more {
		if object, ok := orphan.(client.Object); ok && p.wasSetByUs(object) {
			all = append(all, orphan)
		}
	}
	return meta.SetList(list, all)
}

func (p *Pass) listOwned(ctx context.Context, list client.ObjectList, key string) error {
	if err := p.client.List(ctx, list, client.InNamespace(p.owner.GetNamespace()), client.MatchingFields{OwnedIndex: key}); err != nil {
		return fmt.Errorf("listing children: %w", err)
	}
	return nil
}
