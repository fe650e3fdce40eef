// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/project"
)

// Options say how objects are applied or deleted.
type Options struct {
	// Namespace is where objects go that need one and name none.
	Namespace string
	// MakeNamespaces makes those that objects are in and that are neither among them nor on the server.
	MakeNamespaces bool
	// DryRun lets the server say what would happen, and changes nothing.
	DryRun bool
	// Done is told about each object; it may be nil.
	Done func(Outcome)
}

// RefusedError is returned when the server rejects a CRD.
type RefusedError struct {
	Definition *unstructured.Unstructured
	Err        error
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the server rejected CRD %s: %v", e.Definition.GetName(), e.Err)
}

func (e *RefusedError) Unwrap() error { return e.Err }

// MissingNamespaceError is returned when objects are in namespaces that do not exist.
type MissingNamespaceError struct {
	Namespaces []string
}

func (e *MissingNamespaceError) Error() string {
	if len(e.Namespaces) == 1 {
		return fmt.Sprintf("namespace %q does not exist", e.Namespaces[0])
	}
	return fmt.Sprintf("namespaces %q do not exist", e.Namespaces)
}

// UnknownKindsError is returned when the server does not have kinds of the manifests.
type UnknownKindsError struct {
	Objects []*unstructured.Unstructured
}

func (e *UnknownKindsError) Error() string {
	all := make([]string, 0, len(e.Objects))
	for _, object := range e.Objects {
		all = append(all, fmt.Sprintf("%s (%s)", title(object), object.GetAPIVersion()))
	}
	return "the server does not have the kinds of " + strings.Join(all, ", ")
}

// Apply applies the objects, and returns when the kinds among them can be used. Nothing is applied if it can be known
// beforehand that something cannot be. It returns what happened up to an error.
func (s *Server) Apply(ctx context.Context, objects []*unstructured.Unstructured, o Options) ([]Outcome, error) {
	objects, err := s.prepare(ctx, objects, o)
	if err != nil {
		return nil, err
	}
	var outcomes []Outcome
	var definitions []*unstructured.Unstructured
	coming := kindsToCome(objects)
	namespaces := map[string]bool{}
	established := false
	for _, object := range objects {
		if stageOf(object) > stageDefinitions && !established && !o.DryRun {
			if err := s.AwaitEstablished(ctx, definitions); err != nil {
				return outcomes, err
			}
			established = true
		}
		action, err := s.applyOne(ctx, object, o.DryRun)
		_, kindComes := coming[object.GroupVersionKind().GroupKind()]
		if o.DryRun && (meta.IsNoMatchError(err) && kindComes || apierrors.IsNotFound(err) && namespaces[object.GetNamespace()]) {
			// It needs what this dry run would make, and so cannot exist.
			action, err = Created, nil
		}
		if err != nil {
			return outcomes, err
		}
		switch stageOf(object) {
		case stageDefinitions:
			definitions = append(definitions, object)
		case stageNamespaces:
			namespaces[object.GetName()] = action == Created
		}
		outcomes = append(outcomes, outcome(object, action))
		if o.Done != nil {
			o.Done(outcomes[len(outcomes)-1])
		}
	}
	if !established && !o.DryRun {
		return outcomes, s.AwaitEstablished(ctx, definitions)
	}
	return outcomes, nil
}

// prepare returns the objects as they are applied: complete, and in their order.
func (s *Server) prepare(ctx context.Context, objects []*unstructured.Unstructured, o Options) ([]*unstructured.Unstructured, error) {
	if unknown, err := s.Unknown(objects); err != nil {
		return nil, err
	} else if len(unknown) > 0 {
		return nil, &UnknownKindsError{Objects: unknown}
	}
	complete, err := s.complete(objects, o.Namespace)
	if err != nil {
		return nil, err
	}
	missing, err := s.missingNamespaces(ctx, complete)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 && !o.MakeNamespaces {
		return nil, &MissingNamespaceError{Namespaces: missing}
	}
	for _, name := range missing {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		namespace.SetName(name)
		complete = append(complete, namespace)
	}
	return Order(complete), nil
}

// Unknown are the objects whose kinds neither the server knows nor a CRD among them defines.
func (s *Server) Unknown(objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	coming := kindsToCome(objects)
	var unknown []*unstructured.Unstructured
	for _, object := range objects {
		kind := object.GroupVersionKind()
		if _, comes := coming[kind.GroupKind()]; comes {
			continue
		}
		_, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case meta.IsNoMatchError(err):
			unknown = append(unknown, object)
		case err != nil:
			return nil, fmt.Errorf("looking up the kind of %s: %w", title(object), err)
		}
	}
	return unknown, nil
}

// kindsToCome are those that CRDs among the objects define, and whether their objects are in namespaces.
func kindsToCome(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, object := range objects {
		if project.IsCRD(object) {
			scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
			kinds[project.GroupKindOf(object)] = scope == "Namespaced"
		}
	}
	return kinds
}

// complete returns copies that have the namespace that they need, and nothing that belongs to the server.
func (s *Server) complete(objects []*unstructured.Unstructured, namespace string) ([]*unstructured.Unstructured, error) {
	coming := kindsToCome(objects)
	var complete []*unstructured.Unstructured
	for _, object := range objects {
		object = object.DeepCopy()
		unstructured.RemoveNestedField(object.Object, "status")
		unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
		kind := object.GroupVersionKind()
		namespaced, comes := coming[kind.GroupKind()]
		if !comes {
			mapping, err := s.client.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				return nil, fmt.Errorf("looking up the kind of %s: %w", title(object), err)
			}
			namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
		}
		switch {
		case !namespaced:
			object.SetNamespace("")
		case object.GetNamespace() == "":
			object.SetNamespace(namespace)
		}
		complete = append(complete, object)
	}
	return complete, nil
}

func (s *Server) missingNamespaces(ctx context.Context, objects []*unstructured.Unstructured) ([]string, error) {
	needed := map[string]bool{}
	for _, object := range objects {
		if object.GetNamespace() != "" {
			needed[object.GetNamespace()] = true
		}
	}
	for _, object := range objects {
		if stageOf(object) == stageNamespaces {
			delete(needed, object.GetName())
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		namespace := &unstructured.Unstructured{}
		namespace.SetAPIVersion("v1")
		namespace.SetKind("Namespace")
		err := s.client.Get(ctx, client.ObjectKey{Name: name}, namespace)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
		case apierrors.IsForbidden(err):
			// Who may only work in a namespace need not be able to see that there is one.
		case err != nil:
			return nil, fmt.Errorf("reading namespace %s: %w", name, err)
		}
	}
	return missing, nil
}

func (s *Server) applyOne(ctx context.Context, object *unstructured.Unstructured, dryRun bool) (Action, error) {
	before := &unstructured.Unstructured{}
	before.SetGroupVersionKind(object.GroupVersionKind())
	err := s.client.Get(ctx, client.ObjectKeyFromObject(object), before)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return "", fmt.Errorf("reading %s: %w", title(object), err)
	}
	options := []client.ApplyOption{client.FieldOwner(FieldOwner), client.ForceOwnership}
	if dryRun {
		options = append(options, client.DryRunAll)
	}
	after := object.DeepCopy()
	leadToService(after, before)
	err = s.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), options...)
	switch {
	case err != nil && project.IsCRD(object) && (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || isSchemaError(err)):
		return "", &RefusedError{Definition: object, Err: err}
	case err != nil:
		return "", fmt.Errorf("applying %s: %w", title(object), err)
	case isNew:
		return Created, nil
	case equality.Semantic.DeepEqual(content(before), content(after)):
		return Unchanged, nil
	default:
		return Configured, nil
	}
}

// isSchemaError is true if server-side apply could not make sense of the object, which is an internal error to it.
func isSchemaError(err error) bool {
	return strings.Contains(err.Error(), "failed to create typed patch object")
}

// content is an object without what changes although nobody has changed anything.
func content(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	return object.Object
}
