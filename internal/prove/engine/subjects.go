// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// manager is the field manager of a campaign's writes.
const manager = "opdock-prove"

// live reads a custom resource.
func (r *run) live(ctx context.Context, subject *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(subject.GroupVersionKind())
	if err := r.objects.Get(ctx, client.ObjectKeyFromObject(subject), found); err != nil {
		return nil, err
	}
	return found, nil
}

// specs are the custom resources as they are now, without what others write.
func (r *run) specs() (before []*unstructured.Unstructured) {
	for _, subject := range r.campaign.o.Subjects {
		for key, object := range r.world.State() {
			if key.Kind == subject.GetKind() && key.Name == subject.GetName() && key.Namespace == subject.GetNamespace() && key.Group == subject.GroupVersionKind().Group {
				before = append(before, object.DeepCopy())
			}
		}
	}
	return before
}

// canUndo reports whether a step can be taken back: it changes nothing but objects of the scenario, and deletes none of them. An
// object that is created again is another one.
func (c *campaign) canUndo(step int) bool {
	if step == 0 || c.o.Steps[step].Ends || c.o.Steps[step].Elsewhere {
		return false
	}
	for _, one := range slices.Concat(c.o.Others, c.o.Subjects) {
		before, after := c.reference[step-1].find(one), c.reference[step].find(one)
		if before != nil && (after == nil || after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil) {
			return false
		}
	}
	return true
}

// applied are the objects of the scenario that exist now.
func (r *run) applied(ctx context.Context) (objects []*unstructured.Unstructured, err error) {
	state, err := r.scene(ctx)
	if err != nil {
		return nil, err
	}
	for _, one := range slices.Concat(r.campaign.o.Others, r.campaign.o.Subjects) {
		if _, live := find(state, one); live != nil {
			objects = append(objects, live.DeepCopy())
		}
	}
	return objects, nil
}

// takeBack restores the objects of the scenario, and deletes those that were not there before.
func (r *run) takeBack(ctx context.Context, before []*unstructured.Unstructured) error {
	known := world.State{}
	for _, one := range before {
		known[world.Key{Group: one.GroupVersionKind().Group, Kind: one.GetKind(), Namespace: one.GetNamespace(), Name: one.GetName()}] = one
	}
	for _, one := range slices.Backward(slices.Concat(r.campaign.o.Others, r.campaign.o.Subjects)) {
		if _, was := find(known, one); was != nil {
			continue
		}
		err := client.IgnoreNotFound(r.objects.Delete(ctx, one.DeepCopy(), client.PropagationPolicy("Background")))
		if err != nil && !meta.IsNoMatchError(err) { // a later step brings its kind
			return fmt.Errorf("taking the creation of %s %s back: %w", one.GetKind(), one.GetName(), err)
		}
	}
	err := r.restore(ctx, before)
	if apierrors.IsNotFound(err) {
		return &notThereError{"object to restore any more"}
	}
	return err
}

// restore restores objects, except for fields that the system and the operator write.
func (r *run) restore(ctx context.Context, before []*unstructured.Unstructured) error {
	for _, old := range before {
		err := r.change(ctx, old, func(live *unstructured.Unstructured) {
			for field := range live.Object {
				if !isSystems(field) {
					delete(live.Object, field)
				}
			}
			for field, value := range old.DeepCopy().Object {
				if !isSystems(field) {
					live.Object[field] = value
				}
			}
			// An operator may keep there what it has done last. Such labels and annotations stay, because no client would revert them.
			live.SetAnnotations(restored(live, old, "f:annotations", live.GetAnnotations(), old.GetAnnotations()))
			live.SetLabels(restored(live, old, "f:labels", live.GetLabels(), old.GetLabels()))
		})
		if err != nil {
			return fmt.Errorf("taking the change to %s %s back: %w", old.GetKind(), old.GetName(), err)
		}
	}
	return nil
}

// restored returns labels or annotations with those that the scenario wrote as they were.
func restored(live, old *unstructured.Unstructured, field string, now, before map[string]string) map[string]string {
	maps.DeleteFunc(now, func(name, _ string) bool { return usersFields(live, field)["f:"+name] })
	for name, value := range usersOf(old, field, before) {
		if now == nil {
			now = map[string]string{}
		}
		now[name] = value
	}
	return now
}

func isSystems(field string) bool {
	return field == "metadata" || field == "status" || field == "apiVersion" || field == "kind"
}

// change changes an object.
func (r *run) change(ctx context.Context, which *unstructured.Unstructured, how func(live *unstructured.Unstructured)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := r.live(ctx, which)
		if err != nil {
			return err
		}
		how(live)
		return r.objects.Update(ctx, live, client.FieldOwner(manager))
	})
}

// nudge annotates the custom resources to reconcile them now and not after a back-off of minutes.
func (r *run) nudge(ctx context.Context) error {
	for _, subject := range r.campaign.o.Subjects {
		live, err := r.live(ctx, subject)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		for _, value := range []any{"true", nil} {
			if err := r.annotate(ctx, live, compare.Nudge, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// annotate sets an annotation, or removes it if the value is nil. Deleted objects are ignored.
func (r *run) annotate(ctx context.Context, object *unstructured.Unstructured, key string, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	err = r.objects.Patch(ctx, object.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(manager))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotating %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
