// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options configures how objects are applied or deleted.
type Options struct {
	// Manager is the field manager. It must be set to apply something.
	Manager string
	// Yield keeps an object unchanged if other managers own fields of it, instead of taking over these fields.
	Yield bool
	// Set records the objects in its inventory, and prunes obsolete ones. Without a set, nothing is recorded.
	Set *Set
	// Shared holds objects that others currently use, with the user, such as a session of opdock dev. They are not
	// deleted, and the addresses of their webhooks and conversion are not changed.
	Shared map[ID]string
	// Namespace is where objects go that need one and name none.
	Namespace string
	// MakeNamespaces creates missing namespaces of objects.
	MakeNamespaces bool
	// DryRun asks the server what would happen, and changes nothing.
	DryRun bool
	// Note is called with messages for the user that are not errors; it may be nil.
	Note func(text string)
}

func (o *Options) note(format string, args ...any) {
	if o.Note != nil {
		o.Note(fmt.Sprintf(format, args...))
	}
}

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

// plan holds the objects to apply.
type plan struct {
	objects []*unstructured.Unstructured // complete, and in their order
	// made are namespaces that were added automatically. They are not recorded in the inventory, because other
	// objects may be in them.
	made []string
}

// prepare returns the plan, and an error if a failure is certain.
func (s *Server) prepare(ctx context.Context, objects []*unstructured.Unstructured, o Options) (plan, error) {
	if unknown, err := s.Unknown(objects); err != nil {
		return plan{}, err
	} else if len(unknown) > 0 {
		return plan{}, &UnknownKindsError{Objects: unknown}
	}
	complete, err := s.complete(objects, o.Namespace)
	if err != nil {
		return plan{}, err
	}
	var more []string
	if o.Set != nil {
		more = []string{o.Set.Namespace}
	}
	missing, err := s.missingNamespaces(ctx, complete, more)
	if err != nil {
		return plan{}, err
	}
	if len(missing) > 0 && !o.MakeNamespaces {
		return plan{}, &MissingNamespaceError{Namespaces: missing}
	}
	for _, name := range missing {
		complete = append(complete, namespace(name))
	}
	return plan{objects: Order(complete), made: missing}, nil
}

func namespace(name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetAPIVersion("v1")
	made.SetKind("Namespace")
	made.SetName(name)
	return made
}

// Unknown returns the objects whose kinds neither the server nor a CRD among them defines.
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

// kindsToCome returns the kinds that CRDs among the objects define, and whether they are namespaced.
func kindsToCome(objects []*unstructured.Unstructured) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, object := range objects {
		if isCRD(object) {
			scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
			kinds[definedKind(object)] = scope == "Namespaced"
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

// missingNamespaces returns the namespaces that objects need and that are not among the objects.
func (s *Server) missingNamespaces(ctx context.Context, objects []*unstructured.Unstructured, more []string) ([]string, error) {
	needed := map[string]bool{}
	for _, name := range more {
		needed[name] = true
	}
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
		err := s.client.Get(ctx, client.ObjectKey{Name: name}, namespace(name))
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
