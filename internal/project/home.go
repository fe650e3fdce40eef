// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// inHome gives the operator's workload, account, Roles and RoleBindings the namespace that they are meant for if they name none.
// Such manifests leave it to "kubectl apply --namespace", and only the bindings say which one it has to be: in any other
// namespace, the account would have no rights.
func inHome(manifests []*unstructured.Unstructured) []*unstructured.Unstructured {
	home := homeOf(manifests)
	if home == "" {
		return manifests
	}
	placed := slices.Clone(manifests)
	for i, object := range placed {
		if object.GetNamespace() != "" {
			continue
		}
		switch kind := object.GroupVersionKind().GroupKind(); kind {
		case schema.GroupKind{Kind: "ServiceAccount"}, schema.GroupKind{Group: rbacGroup, Kind: "Role"}, schema.GroupKind{Group: rbacGroup, Kind: "RoleBinding"},
			schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"}, schema.GroupKind{Group: "apps", Kind: "DaemonSet"}:
			placed[i] = object.DeepCopy()
			placed[i].SetNamespace(home)
		}
	}
	return placed
}

// homeOf is the only namespace in which bindings name the operator's account; empty if the account has a namespace, or if
// they name none or several.
func homeOf(manifests []*unstructured.Unstructured) (home string) {
	_, account := accountIn(manifests)
	if account == nil || account.GetNamespace() != "" {
		return ""
	}
	for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
		for _, binding := range only(manifests, schema.GroupKind{Group: rbacGroup, Kind: kind}) {
			subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
			for _, one := range subjects {
				subject, _ := one.(map[string]any)
				namespace, _ := subject["namespace"].(string)
				// A placeholder, such as REPLACE_NAMESPACE, is no namespace.
				if subject["kind"] != "ServiceAccount" || subject["name"] != account.GetName() || len(validation.IsDNS1123Label(namespace)) > 0 {
					continue
				}
				if home != "" && home != namespace {
					return ""
				}
				home = namespace
			}
		}
	}
	return home
}
