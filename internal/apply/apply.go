// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RefusedError is returned when the server rejects a CRD.
type RefusedError struct {
	Definition *unstructured.Unstructured
	Err        error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server rejected CRD %s: %v", e.Definition.GetName(), e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// ObjectError is returned when an object cannot be applied.
type ObjectError struct {
	Object *unstructured.Unstructured
	Err    error
}

func (e *ObjectError) Error() string { return fmt.Sprintf("applying %s: %v", title(e.Object), e.Err) }

func (e *ObjectError) Unwrap() error { return e.Err }

// Apply applies the objects, prunes obsolete members of their set, and returns when the kinds among them can be
// used. Nothing is applied if a failure is certain in advance. With an error, it returns what happened so far.
func (s *Server) Apply(ctx context.Context, objects []*unstructured.Unstructured, o Options) ([]Outcome, error) {
	plan, err := s.prepare(ctx, objects, o)
	if err != nil {
		return nil, err
	}
	record, err := s.begin(ctx, plan, o)
	if err != nil {
		return nil, err
	}
	outcomes, err := s.applyAll(ctx, plan.objects, record, o)
	if err != nil {
		return outcomes, errors.Join(err, record.save(ctx))
	}
	pruned, err := s.prune(ctx, record, o)
	return append(outcomes, pruned...), errors.Join(err, record.save(ctx))
}

func (s *Server) applyAll(ctx context.Context, objects []*unstructured.Unstructured, record *record, o Options) ([]Outcome, error) {
	var outcomes []Outcome
	var definitions []*unstructured.Unstructured
	coming := kindsToCome(objects)
	made := map[string]bool{} // namespaces that a dry run would create
	awaited := false
	for _, object := range objects {
		if stageOf(object) > stageDefinitions && !awaited && !o.DryRun {
			if err := s.AwaitEstablished(ctx, definitions); err != nil {
				return outcomes, err
			}
			awaited = true
		}
		action, live, err := s.applyOne(ctx, object, o)
		_, kindComes := coming[object.GroupVersionKind().GroupKind()]
		if o.DryRun && (meta.IsNoMatchError(err) && kindComes || apierrors.IsNotFound(err) && made[object.GetNamespace()]) {
			// It needs what this dry run would make, and so cannot exist.
			action, err = Created, nil
		}
		if err != nil {
			return outcomes, err
		}
		switch stageOf(object) {
		case stageDefinitions:
			// A CRD that already existed and is established is served, so no request is needed.
			if action != Unchanged || stateOf(live).status != current {
				definitions = append(definitions, live)
			}
		case stageNamespaces:
			made[object.GetName()] = action == Created
		}
		if live != nil {
			record.applied(live)
		}
		one := outcome(object, action)
		one.Live = live
		outcomes = append(outcomes, one)
	}
	if !awaited && !o.DryRun {
		return outcomes, s.AwaitEstablished(ctx, definitions)
	}
	return outcomes, nil
}

// applyOne returns what happened to the object, and how it is now.
func (s *Server) applyOne(ctx context.Context, object *unstructured.Unstructured, o Options) (Action, *unstructured.Unstructured, error) {
	before := empty(object)
	err := s.client.Get(ctx, client.ObjectKeyFromObject(object), before)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return "", nil, fmt.Errorf("reading %s: %w", title(object), err)
	}
	after := object.DeepCopy()
	if holder := o.Shared[IDOf(object)]; holder != "" && !isNew && !leaveDestination(after, before) {
		o.note("kept %s as it is: %s uses it", title(object), holder)
		return Kept, before, nil
	}
	sum, err := s.digest(after, o)
	if err != nil {
		return "", nil, err
	}
	if !isNew && s.lastSeen(object) == (version{sum, before.GetResourceVersion()}) {
		return Unchanged, before, nil
	}
	if err := s.leadAway(ctx, after, before, o); err != nil {
		return "", nil, err
	}
	options := []client.ApplyOption{client.FieldOwner(o.Manager)}
	if !o.Yield {
		options = append(options, client.ForceOwnership)
	}
	if o.DryRun {
		options = append(options, client.DryRunAll)
	}
	err = s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), options...)
	switch {
	case o.Yield && apierrors.IsConflict(err):
		return Kept, before, nil
	case err != nil && isCRD(object) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || isSchemaError(err)):
		return "", nil, &RefusedError{Definition: object, Err: err}
	case err != nil:
		return "", nil, &ObjectError{Object: object, Err: WithPlaceholders(object, err)}
	}
	if !o.DryRun {
		s.see(object, version{sum, after.GetResourceVersion()})
	}
	switch {
	case isNew:
		return Created, after, nil
	case equality.Semantic.DeepEqual(content(before), content(after)):
		return Unchanged, after, nil
	default:
		return Configured, after, nil
	}
}

// digest identifies an applied object and its field manager.
func (s *Server) digest(object *unstructured.Unstructured, o Options) ([sha256.Size]byte, error) {
	encoded, err := object.MarshalJSON()
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("encoding %s: %w", title(object), err)
	}
	return sha256.Sum256(slices.Concat([]byte(o.Manager+"\x00"), encoded)), nil
}

func (s *Server) lastSeen(object *unstructured.Unstructured) version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[IDOf(object)]
}

func (s *Server) see(object *unstructured.Unstructured, v version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[IDOf(object)] = v
}

// isSchemaError is true if server-side apply could not make sense of the object, which is an internal error to it.
func isSchemaError(err error) bool {
	return strings.Contains(err.Error(), "failed to create typed patch object")
}

// content returns an object without the fields that change by themselves.
func content(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	return object.Object
}
