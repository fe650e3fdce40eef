// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/opdock/opdock/internal/crdspec"
)

// withResources finds the resource and the namespace of each object of a dump. An object that is there twice counts
// once.
func withResources(read []Object, o Options, report *Report) ([]Object, error) {
	kinds := kindsOf(read)
	if err := checkKinds(o.Kinds, slices.Collect(maps.Values(kinds))); err != nil {
		return nil, err
	}
	home := metav1.NamespaceDefault
	if len(o.Namespaces) == 1 {
		home = o.Namespaces[0]
	}
	seen, namespaces := map[string]bool{}, sets.New[string]()
	var all []Object
	for _, object := range read {
		one := kinds[object.GroupVersionKind().GroupKind()]
		namespace := object.GetNamespace()
		switch {
		case !one.guessed && !one.Namespaced:
			namespace = "" // as the API server does
		case namespace == "" && one.Namespaced:
			namespace = home
		}
		namespaces.Insert(namespaceOf(object, namespace))
		if !one.wanted(o.Kinds) {
			continue
		}
		if namespace == "" && one.guessed && object.GetUID() == "" {
			// No API server has stored it. If its kind turns out to need a namespace, the object blocks all
			// requests for that kind.
			report.LeftOut["they have no namespace, and no CRD in the dump says whether they need one"]++
			continue
		}
		key := one.GroupResource().String() + "/" + namespace + "/" + object.GetName()
		if seen[key] {
			continue
		}
		seen[key] = true
		if object.GetNamespace() == "" && namespace != "" {
			report.Changed[fmt.Sprintf("objects without a namespace are in namespace %q", home)]++
		}
		object.SetNamespace(namespace)
		object.Resource, object.anyName = one.GroupResource(), one.guessed
		all = append(all, object)
	}
	return all, checkNamespaces(o.Namespaces, namespaces)
}

// namespaceOf returns the namespace that an object is in, or is.
func namespaceOf(o Object, namespace string) string {
	if gvk := o.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Namespace" {
		return o.GetName()
	}
	return namespace
}

// checkNamespaces returns an error if the source does not have a namespace that was asked for.
func checkNamespaces(namespaces []string, known sets.Set[string]) error {
	const few = 10
	for _, namespace := range namespaces {
		if known.Has(namespace) {
			continue
		}
		names := sets.List(known.Difference(sets.New("").Union(systemNamespaces)))
		if len(names) > few {
			names = append(names[:few], "...")
		}
		if len(names) == 0 {
			return fmt.Errorf("the source has no namespace %q", namespace)
		}
		return fmt.Errorf("the source has no namespace %q; it has: %s", namespace, strings.Join(names, ", "))
	}
	return nil
}

// kindsOf returns Kubernetes' own kinds, those that the CRDs of a dump define, and guesses for its other kinds.
func kindsOf(read []Object) map[schema.GroupKind]resource {
	kinds := builtInKinds()
	for _, object := range read {
		if object.GroupVersionKind().Group != crdResource.Group || object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		if definition := crdspec.Of(object.Unstructured); definition.Plural != "" {
			kinds[definition.GroupKind()] = defined(definition)
		}
	}
	for _, object := range read {
		gvk := object.GroupVersionKind()
		one, found := kinds[gvk.GroupKind()]
		if !found {
			guess, _ := meta.UnsafeGuessKindToResource(gvk)
			one = resource{GroupVersionResource: guess, guessed: true, APIResource: metav1.APIResource{
				Name: guess.Resource, SingularName: strings.ToLower(gvk.Kind), Kind: gvk.Kind,
			}}
		}
		one.GroupVersionResource.Version = gvk.Version
		if one.guessed {
			one.Namespaced = one.Namespaced || object.GetNamespace() != ""
		}
		kinds[gvk.GroupKind()] = one
	}
	return kinds
}

// defined returns the kind that a CRD defines.
func defined(definition crdspec.Spec) resource {
	singular := definition.Singular
	if singular == "" {
		singular = strings.ToLower(definition.Kind) // as the API server does
	}
	return resource{
		GroupVersionResource: schema.GroupVersionResource{Group: definition.Group, Resource: definition.Plural},
		APIResource: metav1.APIResource{
			Name: definition.Plural, SingularName: singular, Kind: definition.Kind, ShortNames: definition.ShortNames,
			Namespaced: definition.Scope == "Namespaced",
		},
		guessed: definition.Scope == "",
	}
}
