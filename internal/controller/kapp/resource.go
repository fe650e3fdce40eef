// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
)

// Labels and annotations of each component's object. They identify the component after it was removed from the
// spec.
const (
	// LabelComponent holds the component's name.
	LabelComponent = "opdock.dev/component"

	// AnnotationDependsOn holds the names of the components that it depends on, with commas between them. They are
	// deleted after it.
	AnnotationDependsOn = "opdock.dev/depends-on"
)

// resource is the object of a component.
type resource struct {
	kind          *componentKind
	name          string
	configuration map[string]any
}

// desired returns the desired object of a component: its type, spec, labels and annotations. Fields that only the
// server writes are dropped, so users can paste the output of kubectl get. Unsupported fields are refused.
func desired(kapp *kappv1.KAPP, component *kappv1.Component, kinds []*componentKind) (*resource, error) {
	var content map[string]any
	if err := json.Unmarshal(component.Resource.Raw, &content); err != nil {
		return nil, fmt.Errorf("resource is not an object: %w", err)
	}
	apiVersion, _ := content["apiVersion"].(string)
	kindName, _ := content["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(apiVersion, kindName)
	index := slices.IndexFunc(kinds, func(kind *componentKind) bool { return kind.is(gvk) })
	if index < 0 {
		return nil, fmt.Errorf("resource has kind %q and apiVersion %q; a component must be an AppService, PodCluster, Robot or Collector", kindName, apiVersion)
	}
	metadata, _ := content["metadata"].(map[string]any)
	if err := refuse(metadata, kapp.Namespace); err != nil {
		return nil, err
	}
	name, _ := metadata["name"].(string)
	if name == "" {
		name = kapp.Name + "-" + component.Name
	}
	labels := below(metadata, "labels")
	labels[LabelComponent] = component.Name
	annotations := below(metadata, "annotations")
	delete(annotations, AnnotationDependsOn)
	if dependencies := dependsOn(component); len(dependencies) > 0 {
		annotations[AnnotationDependsOn] = strings.Join(dependencies, ",")
	}
	configuration := map[string]any{}
	for field, value := range content {
		if value != nil && field != "status" && field != "metadata" {
			configuration[field] = withoutNulls(value)
		}
	}
	kind := kinds[index]
	configuration["apiVersion"] = kind.GroupVersion().String()
	configuration["metadata"] = map[string]any{"name": name, "labels": labels, "annotations": annotations}
	return &resource{kind: kind, name: name, configuration: configuration}, nil
}

// refuse returns an error for unsupported fields in the metadata.
func refuse(metadata map[string]any, namespace string) error {
	if wanted, _ := metadata["namespace"].(string); wanted != "" && wanted != namespace {
		return fmt.Errorf("resource.metadata.namespace is %q: a component is in the namespace of its KAPP; remove it", wanted)
	}
	if owners, _ := metadata["ownerReferences"].([]any); len(owners) > 0 {
		return errors.New("resource.metadata.ownerReferences is set: the owner of a component is its KAPP; remove it")
	}
	if finalizers, _ := metadata["finalizers"].([]any); len(finalizers) > 0 {
		return errors.New("resource.metadata.finalizers is set: it would prevent the ordered deletion of components; remove it")
	}
	if prefix, _ := metadata["generateName"].(string); prefix != "" && metadata["name"] == nil {
		return errors.New("resource.metadata.generateName is set: each reconcile would create another object; set name instead")
	}
	return nil
}

// below copies the object of that name without nulls; it is empty if there is none.
func below(object map[string]any, name string) map[string]any {
	copied, ok := withoutNulls(object[name]).(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return copied
}

// withoutNulls copies a value. A field that is null is as good as none, but applied it would never count as ours.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := make(map[string]any, len(value))
		for name, part := range value {
			if part != nil {
				kept[name] = withoutNulls(part)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i := range value {
			kept[i] = withoutNulls(value[i])
		}
		return kept
	default:
		return value
	}
}

// dependsOn are the names in a component's dependsOn, each once and in a fixed order.
func dependsOn(component *kappv1.Component) []string {
	return slices.Compact(slices.Sorted(slices.Values(component.DependsOn)))
}

// recorded reads back what desired has left on an object.
func recorded(object metav1.Object) (component string, dependencies []string) {
	if names := object.GetAnnotations()[AnnotationDependsOn]; names != "" {
		dependencies = strings.Split(names, ",")
	}
	return object.GetLabels()[LabelComponent], dependencies
}

// String names the object as people do.
func (r resource) String() string { return r.kind.Kind + " " + r.name }
