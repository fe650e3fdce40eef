// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// keptNamespaces belong to the cluster, even if a manifest lists them.
var keptNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// StuckError is returned when deleted objects do not disappear in time.
type StuckError struct {
	Reasons []string
	Cause   error
}

func (e *StuckError) Error() string { return strings.Join(e.Reasons, "; ") }

func (e *StuckError) Unwrap() error { return e.Cause }

// Delete deletes the objects, removes them from the inventory of the set, and returns when they
// are gone. Objects that do not exist are not an error, and shared ones are kept. With an
// error, it returns what happened so far.
func (s *Server) Delete(ctx context.Context, objects []*unstructured.Unstructured, o Options) ([]Outcome, error) {
	known, err := s.known(objects, o.Namespace)
	if err != nil {
		return nil, err
	}
	ordered := orderOfDeletion(known)
	var outcomes []Outcome
	// Objects of one stage are deleted together, and then the next stage.
	for len(ordered) > 0 {
		stage := stageOf(ordered[0])
		end := slices.IndexFunc(ordered, func(object *unstructured.Unstructured) bool { return stageOf(object) != stage })
		if end < 0 {
			end = len(ordered)
		}
		var going []*unstructured.Unstructured
		for _, object := range ordered[:end] {
			action := Kept
			if o.Shared[IDOf(object)] == "" {
				if action, err = s.deleteOne(ctx, object, o.DryRun); err != nil {
					return outcomes, err
				}
				going = append(going, object)
			}
			outcomes = append(outcomes, outcome(object, action))
		}
		if !o.DryRun {
			if err := s.awaitGone(ctx, going); err != nil {
				return outcomes, err
			}
		}
		ordered = ordered[end:]
	}
	if o.Set == nil || o.DryRun {
		return outcomes, nil
	}
	return outcomes, s.forget(ctx, o.Set, known)
}

// forget removes objects from all parts of the inventory. Objects that were kept because
// another set uses them now belong to that set.
func (s *Server) forget(ctx context.Context, set *Set, gone []*unstructured.Unstructured) error {
	ids := map[ID]bool{}
	for _, object := range gone {
		ids[IDOf(object)] = true
	}
	err := s.Update(ctx, set, func(i *Inventory) {
		for part, members := range i.Parts {
			i.Parts[part] = slices.DeleteFunc(members, func(one Member) bool { return ids[one.ID] })
		}
	})
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil // without the right to write it, there is none; and its namespace may be deleted
	}
	return err
}

// known returns copies in a version that the server serves, with their namespace set.
func (s *Server) known(objects []*unstructured.Unstructured, namespace string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, object := range objects {
		kind := object.GroupVersionKind()
		if kind.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) && slices.Contains(keptNamespaces, object.GetName()) {
			continue
		}
		object, err := s.served(memberOf(object))
		if err != nil {
			return nil, err
		}
		kind = object.GroupVersionKind()
		mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err != nil:
		case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
			object.SetNamespace("")
		case object.GetNamespace() == "":
			object.SetNamespace(namespace)
		}
		all = append(all, object)
	}
	return all, nil
}

func deleteOptions(object *unstructured.Unstructured, dryRun bool) []client.DeleteOption {
	var options []client.DeleteOption
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	if stageOf(object) == stageWorkloads {
		// Its pods must be gone first.
		options = append(options, client.PropagationPolicy(metav1.DeletePropagationForeground))
	}
	return options
}

func (s *Server) deleteOne(ctx context.Context, object *unstructured.Unstructured, dryRun bool) (Action, error) {
	err := s.client.Delete(ctx, object.DeepCopy(), deleteOptions(object, dryRun)...)
	switch {
	case err == nil:
		return Deleted, nil
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return Absent, nil
	case apierrors.IsConflict(err) && stageOf(object) == stageNamespaces:
		return Deleted, nil // another client has started it
	default:
		return "", fmt.Errorf("deleting %s: %w", title(object), err)
	}
}

// awaitGone waits until all objects are gone.
func (s *Server) awaitGone(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(object), empty(object))
		if err == nil { // most are gone at once, and need no watch
			err = s.follow(ctx, object, func(live *unstructured.Unstructured) (bool, error) { return live == nil, nil })
		}
		switch {
		case ctx.Err() != nil:
			return s.stuck(ctx, objects)
		case err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("waiting until %s is gone: %w", title(object), err)
		}
	}
	return nil
}

// stuck describes why objects still exist after the timeout.
func (s *Server) stuck(ctx context.Context, objects []*unstructured.Unstructured) error {
	stuck := &StuckError{Cause: context.Cause(ctx)}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return stuck
	}
	// The timeout has passed, but there is extra time to find the reason.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), explainTimeout)
	defer cancel()
	left, err := s.present(ctx, objects)
	if err != nil {
		return errors.Join(stuck, err)
	}
	if len(left) == 0 {
		return nil
	}
	for _, live := range left {
		stuck.Reasons = append(stuck.Reasons, fmt.Sprintf("%s has not been deleted: %s", title(live), s.whyStill(ctx, live)))
	}
	return stuck
}

// present returns the objects that exist, in their live version.
func (s *Server) present(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var left []*unstructured.Unstructured
	for _, object := range objects {
		live := empty(object)
		err := s.client.Get(ctx, client.ObjectKeyFromObject(object), live)
		switch {
		case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", title(object), err)
		default:
			left = append(left, live)
		}
	}
	return left, nil
}

// whyStill returns what blocks the deletion of an object.
func (s *Server) whyStill(ctx context.Context, live *unstructured.Unstructured) string {
	if isCRD(live) {
		if left, err := s.Instances(ctx, []*unstructured.Unstructured{live}); err == nil && len(left) > 0 {
			return left[0].String()
		}
	}
	for _, one := range conditionsOf(live) {
		// The conditions of a namespace name the remaining objects.
		if one.status == "True" && (one.kind == "NamespaceContentRemaining" || one.kind == "NamespaceFinalizersRemaining") {
			return one.message
		}
	}
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		return "it is waiting for finalizers: " + strings.Join(finalizers, ", ")
	}
	return "the server has not removed it yet"
}
