// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// implied returns the additional rights that a write needs: the API server checks them by the content of
// the object, so no request shows them.
func (o *observer) implied(r *Request, before *version, now *unstructured.Unstructured) []Implied {
	if r.Verb == "delete" || r.Verb == "deletecollection" || r.Resource.Subresource == "status" {
		return nil
	}
	rights := o.blockedOwners(before, now)
	place := r.Resource
	if r.Status == http.StatusCreated && (r.Verb == "apply" || r.Verb == "update") {
		rights = append(rights, Implied{"create", bare(place), fmt.Sprintf("this %s created the object", r.Verb)})
	}
	switch {
	case place.Group == rbacv1.GroupName && (place.Resource == "roles" || place.Resource == "clusterroles"):
		rights = append(rights, Implied{"escalate", bare(place), "a role can grant only what its writer has, unless the writer may escalate"})
		rights = append(rights, givenAway(now)...)
	case place.Group == rbacv1.GroupName:
		rights = append(rights, o.bound(now)...)
	case place.Group == certificatesv1.GroupName && place.Subresource == "approval":
		signer, _, _ := unstructured.NestedString(now.Object, "spec", "signerName")
		rights = append(rights, Implied{"approve", Resource{Group: place.Group, Resource: "signers", Name: signer}, "approving a request of this signer"})
	}
	return rights
}

// GivenAway is why a client needs a right: it writes a role that grants it, and may not escalate.
const GivenAway = "a role that the operator writes grants it"

// givenAway returns the rights that a role grants. Rights to URLs are left out: only roles for people have
// them.
func givenAway(role *unstructured.Unstructured) (rights []Implied) {
	const most = 256 // of a hand-written role; a larger role has wildcards
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	for _, one := range rules {
		rule, ok := one.(map[string]any)
		if !ok {
			continue
		}
		list := func(field string) []string {
			values, _, _ := unstructured.NestedStringSlice(rule, field)
			return values
		}
		names := list("resourceNames")
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range list("apiGroups") {
			for _, resource := range list("resources") {
				base, subresource, _ := strings.Cut(resource, "/")
				for _, verb := range list("verbs") {
					for _, name := range names {
						if len(rights) == most {
							return rights
						}
						place := Resource{Group: group, Resource: base, Subresource: subresource, Namespace: role.GetNamespace(), Name: name}
						rights = append(rights, Implied{verb, place, GivenAway})
					}
				}
			}
		}
	}
	return rights
}

// bare is a resource without the object.
func bare(r Resource) Resource {
	return Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: r.Namespace}
}

// blockedOwners returns the owners whose deletion the write blocks: OwnerReferencesPermissionEnforcement,
// which some distributions enable, requires the right to change their finalizers.
func (o *observer) blockedOwners(before *version, now *unstructured.Unstructured) (rights []Implied) {
	had := map[metav1.OwnerReference]bool{}
	references := now.GetOwnerReferences()
	if len(references) == 0 {
		return nil
	}
	if before != nil && before.uid == string(now.GetUID()) {
		if old := before.object(); old != nil {
			for _, reference := range old.GetOwnerReferences() {
				had[plain(reference)] = true
			}
		}
	}
	for _, reference := range references {
		if reference.BlockOwnerDeletion == nil || !*reference.BlockOwnerDeletion || had[plain(reference)] {
			continue
		}
		version, err := schema.ParseGroupVersion(reference.APIVersion)
		if err != nil {
			continue
		}
		owner := Resource{
			Group: version.Group, Version: version.Version, Resource: o.resourceOf(version.WithKind(reference.Kind)), Subresource: "finalizers",
			Namespace: now.GetNamespace(), Name: reference.Name,
		}
		rights = append(rights, Implied{"update", owner, fmt.Sprintf("%s %s refers to its owner with blockOwnerDeletion", now.GetKind(), now.GetName())})
	}
	return rights
}

// plain is a comparable owner reference, without pointers.
func plain(reference metav1.OwnerReference) metav1.OwnerReference {
	if reference.BlockOwnerDeletion == nil || !*reference.BlockOwnerDeletion {
		reference.Name = "" // one that does not block yet is not the same
	}
	reference.BlockOwnerDeletion, reference.Controller = nil, nil
	return reference
}

// bound is the role that a binding refers to.
func (o *observer) bound(binding *unstructured.Unstructured) []Implied {
	kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
	name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
	if name == "" {
		return nil
	}
	role := Resource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterroles", Name: name}
	if kind == "Role" {
		role.Resource, role.Namespace = "roles", binding.GetNamespace()
	}
	return []Implied{{"bind", role, "a binding can grant only what its writer has, unless the writer may bind the role"}}
}

// resourceOf returns the resource of a kind, from earlier requests, or else by the usual rules.
func (o *observer) resourceOf(kind schema.GroupVersionKind) string {
	if resource, ok := o.resources[kind.GroupKind()]; ok {
		return resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}
