// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lasting reports whether an object is never pruned, because its content would be deleted with it.
// It stays in the inventory, so deleting the whole set deletes it as well.
func (i ID) lasting() bool {
	return i.isCRD() || i.Group == "" && slices.Contains([]string{"Namespace", "PersistentVolumeClaim", "PersistentVolume"}, i.Kind)
}

// prune deletes the members that the plan does not have.
func (s *Server) prune(ctx context.Context, r *record, o Options) ([]Outcome, error) {
	var pruned []*unstructured.Unstructured
	for _, one := range r.outdated() {
		object, err := s.served(one)
		if err != nil {
			return nil, err
		}
		live := empty(object)
		switch err := s.client.Get(ctx, client.ObjectKeyFromObject(object), live); {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
			r.forget(one.ID)
			continue
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", one, err)
		}
		switch holder := o.Shared[one.ID]; {
		case one.lasting():
			o.note("kept %s, which the manifests no longer have: it is not pruned, because everything in it would be deleted", one)
		case holder != "":
			o.note("kept %s, which the manifests no longer have: %s uses it", one, holder)
			r.forget(one.ID)
		case !stillOurs(live, one, o.Manager):
			o.note("kept %s, which the manifests no longer have: another client has recreated it", one)
			r.forget(one.ID)
		default:
			pruned = append(pruned, live)
		}
	}
	var outcomes []Outcome
	for _, live := range orderOfDeletion(pruned) {
		if err := s.pruneOne(ctx, live, o.DryRun); err != nil {
			return outcomes, err
		}
		r.forget(IDOf(live))
		outcomes = append(outcomes, outcome(live, Pruned))
	}
	if o.DryRun {
		return outcomes, nil
	}
	return outcomes, s.awaitGone(ctx, pruned)
}

// stillOurs reports whether a live object is the one that was applied. It may have been deleted
// and recreated.
func stillOurs(live *unstructured.Unstructured, known Member, manager string) bool {
	if known.UID != "" {
		return live.GetUID() == known.UID
	}
	return slices.ContainsFunc(live.GetManagedFields(), func(one metav1.ManagedFieldsEntry) bool {
		return one.Manager == manager && one.Operation == metav1.ManagedFieldsOperationApply
	})
}

func (s *Server) pruneOne(ctx context.Context, live *unstructured.Unstructured, dryRun bool) error {
	options := deleteOptions(live, dryRun)
	options = append(options, client.Preconditions{UID: ptr.To(live.GetUID())})
	err := s.client.Delete(ctx, live.DeepCopy(), options...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // another client has deleted it
	}
	if err != nil {
		return fmt.Errorf("pruning %s: %w", title(live), err)
	}
	return nil
}

// served returns a member in a version that the server serves: the version that it was applied in
// may no longer exist.
func (s *Server) served(m Member) (*unstructured.Unstructured, error) {
	object := m.object()
	kind := object.GroupVersionKind()
	_, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err == nil {
		return object, nil
	}
	if !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("looking up the kind of %s: %w", m, err)
	}
	mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind())
	switch {
	case meta.IsNoMatchError(err):
		return object, nil // the server does not have the kind at all; reading it will fail
	case err != nil:
		return nil, fmt.Errorf("looking up the kind of %s: %w", m, err)
	}
	object.SetGroupVersionKind(mapping.GroupVersionKind)
	return object, nil
}
