// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// implied returns the additional rights that a write needs: the API server checks them by the content of
// the object, so no request shows them.
func (o *observer) implied(r *Request, before *version, now client.Object) []Implied {
	place := r.Resource
	switch {
	case r.Verb == "delete" || r.Verb == "deletecollection":
		return nil
	case place.Subresource == "status":
		return signed(place, before, now)
	}
	kind := kindOf(now)
	if r.Object != nil {
		kind = r.Object.Kind // an answer may be metadata alone
	}
	rights := append(o.blockedOwners(before, now, kind), changedOwners(r, before, now)...)
	if r.Status == http.StatusCreated && (r.Verb == "apply" || r.Verb == "update") {
		rights = append(rights, Implied{Verb: "create", Resource: bare(place), Because: fmt.Sprintf("this %s created the object", r.Verb)})
	}
	switch {
	case place.Group == rbacv1.GroupName && (place.Resource == "roles" || place.Resource == "clusterroles"):
		if !r.Refused() && !r.DryRun && r.As == "" && len(o.roles) < maxWrittenRoles {
			o.roles[keyOf(place)] = true
		}
		rights = append(rights, rightsOfWriter(place, before.unstructured(), asUnstructured(now))...)
	case place.Group == rbacv1.GroupName:
		rights = append(rights, o.bound(asUnstructured(now))...)
	case place.Group == certificatesv1.GroupName && place.Subresource == "approval":
		rights = append(rights, Implied{Verb: "approve", Resource: signerOf(asUnstructured(now)), Because: "approving a request of this signer"})
	case place.Group == certificatesv1.GroupName && place.Resource == "clustertrustbundles":
		rights = append(rights, attested(r, asUnstructured(now))...)
	case place.Group == admissionregistrationv1.GroupName:
		rights = append(rights, o.parameters(place, before, asUnstructured(now))...)
	}
	return rights
}

// signed returns the right that a change to the certificate or the conditions of a request for one needs.
func signed(place Resource, before *version, object client.Object) []Implied {
	if place.Group != certificatesv1.GroupName || kindOf(object) == partialMetadata {
		return nil
	}
	old, now := before.unstructured(), asUnstructured(object)
	signs := false
	switch place.Resource {
	case "certificatesigningrequests":
		signs = differ(old, now, "status", "certificate") || differ(old, now, "status", "conditions")
	case "podcertificaterequests":
		signs = differ(old, now, "status")
	}
	if !signs {
		return nil
	}
	return []Implied{{Verb: "sign", Resource: signerOf(now), Because: "signing a request of this signer"}}
}

// attested returns the right that a change to a bundle of certificates needs if the bundle names a signer.
func attested(r *Request, now *unstructured.Unstructured) []Implied {
	signer := signerOf(now)
	if signer.Name == "" || r.Change != nil && r.Change.None {
		return nil
	}
	return []Implied{{Verb: "attest", Resource: signer, Because: "attesting certificates of this signer"}}
}

// signerOf returns the signer that an object names.
func signerOf(object *unstructured.Unstructured) Resource {
	name, _, _ := unstructured.NestedString(object.Object, "spec", "signerName")
	return Resource{Group: certificatesv1.GroupName, Resource: "signers", Name: name}
}

// differ reports whether a field of two objects differs; it does if there is no older object.
func differ(old, now *unstructured.Unstructured, path ...string) bool {
	if old == nil {
		return true
	}
	a, _, _ := unstructured.NestedFieldNoCopy(old.Object, path...)
	b, _, _ := unstructured.NestedFieldNoCopy(now.Object, path...)
	return !equality.Semantic.DeepEqual(a, b)
}

// parameters is the right to read the parameters of an admission policy, which the API server requires of whoever writes the
// policy or a binding of it.
func (o *observer) parameters(place Resource, before *version, now *unstructured.Unstructured) []Implied {
	old := before.unstructured()
	policies, isBinding := strings.CutSuffix(place.Resource, "bindings")
	if !isBinding {
		kind, ok := parameterKind(now)
		if !ok || !differ(old, now, "spec", "paramKind") {
			return nil
		}
		return []Implied{{
			Verb: "get", Resource: Resource{Group: kind.Group, Version: kind.Version, Resource: o.resourceOf(kind)},
			Because: "the writer of an admission policy must be able to read its parameters",
		}}
	}
	reference, ok, _ := unstructured.NestedStringMap(withoutSelector(now), "spec", "paramRef")
	if !ok || !differ(old, now, "spec", "paramRef") && !differ(old, now, "spec", "policyName") {
		return nil
	}
	name, _, _ := unstructured.NestedString(now.Object, "spec", "policyName")
	policies = strings.TrimSuffix(policies, "policy") + "policies"
	known := o.memory.find(objectKey{group: place.Group, resource: policies, name: name})
	policy := known.latest()
	if policy == nil {
		return nil // its kind of parameters is not known
	}
	kind, ok := parameterKind(policy.unstructured())
	if !ok {
		return nil
	}
	verb := "get"
	if reference["name"] == "" {
		verb = "list"
	}
	return []Implied{{
		Verb:     verb,
		Resource: Resource{Group: kind.Group, Version: kind.Version, Resource: o.resourceOf(kind), Namespace: reference["namespace"], Name: reference["name"]},
		Because:  "the writer of a binding of an admission policy must be able to read its parameters",
	}}
}

// withoutSelector is a binding in which all parts of the reference to parameters are strings.
func withoutSelector(binding *unstructured.Unstructured) map[string]any {
	plain := binding.DeepCopy().Object
	unstructured.RemoveNestedField(plain, "spec", "paramRef", "selector")
	return plain
}

func parameterKind(policy *unstructured.Unstructured) (kind schema.GroupVersionKind, ok bool) {
	if policy == nil {
		return kind, false
	}
	version, _, _ := unstructured.NestedString(policy.Object, "spec", "paramKind", "apiVersion")
	name, _, _ := unstructured.NestedString(policy.Object, "spec", "paramKind", "kind")
	return schema.FromAPIVersionAndKind(version, name), name != ""
}

// toldAllowed returns the right that a SelfSubjectAccessReview checks, if the review allows it. Some operators exit or skip work if such
// a review denies a right. Reviews with wildcards are ignored: they do not show which right the operator uses.
func toldAllowed(place Resource, review *unstructured.Unstructured) []Implied {
	if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); place.Resource != "selfsubjectaccessreviews" || !allowed {
		return nil
	}
	of := func(kind, field string) string {
		text, _, _ := unstructured.NestedString(review.Object, "spec", kind, field)
		return text
	}
	const resource, url = "resourceAttributes", "nonResourceAttributes"
	right := Implied{
		Verb: of(resource, "verb") + of(url, "verb"), Path: of(url, "path"), Because: "the operator asks the API server whether it has this right",
		Resource: Resource{
			Group: of(resource, "group"), Version: of(resource, "version"), Resource: of(resource, "resource"), Subresource: of(resource, "subresource"),
			Namespace: of(resource, "namespace"), Name: of(resource, "name"),
		},
	}
	switch {
	case right.Verb == "", hasWildcard(right), right.Path == "" && right.Resource.Resource == "":
		return nil
	case right.Resource.Name == "" && slices.Contains([]string{"bind", "escalate", "impersonate", "approve", "sign", "attest"}, right.Verb):
		return nil // without a name, this right allows privilege escalation
	}
	return []Implied{right}
}

// impliedByUpgrade is the right that a connection to a container needs by WebSocket, which begins with a GET: since version
// 1.35 the API server also requires the right that a POST needs.
func impliedByUpgrade(r *Request) []Implied {
	if r.Verb != "get" || r.Resource.Subresource == "proxy" || !isConversation(r.Resource.Subresource) {
		return nil
	}
	return []Implied{{Verb: "create", Resource: r.Resource, Because: "a connection by WebSocket needs create as well as get, since Kubernetes 1.35"}}
}

// impliedOfSender returns the rights that the sender of a request needs besides the right to send it. Whoever sends it as
// another user needs only the right to impersonate: the rest is checked for that user.
func (r *Request) impliedOfSender() (rights []Implied) {
	switch {
	case r.ByToken:
		return nil // everything is checked for the owner of the token
	case r.As == "":
		return r.Implies
	}
	user := Resource{Version: "v1", Resource: "users", Name: r.As}
	if namespace, name, ok := ServiceAccount(r.As); ok {
		user.Resource, user.Namespace, user.Name = "serviceaccounts", namespace, name
	}
	rights = []Implied{{Verb: "impersonate", Resource: user, Because: "requests were sent as another user"}}
	for _, one := range r.Implies {
		if one.Verb == "impersonate" {
			rights = append(rights, one)
		}
	}
	return rights
}

const serviceAccountPrefix = "system:serviceaccount:"

// ServiceAccount parses the user name of a service account; false if it is another user.
func ServiceAccount(user string) (namespace, name string, ok bool) {
	account, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return "", "", false
	}
	return strings.Cut(account, ":")
}

// RefusedSender reports whether a request was refused because its sender lacks a right, and not the user that is impersonated.
// Since version 1.35 the API server may name a verb that begins with impersonate.
func (r *Request) RefusedSender() bool {
	return r.LacksRight() && !r.ByToken && (r.As == "" || r.Message == "" || strings.Contains(r.Message, "cannot impersonate"))
}

const (
	// GivenAway is why a client needs a right: it writes a role that grants it, and may not escalate.
	GivenAway = "a role that the operator writes grants it"
	// Bound is why a client needs a right: it writes a binding of a role that grants it, and may not bind that role.
	Bound = "a role that the operator binds grants it"
	// BindsUnknown is why a client needs the right to bind a role: what the role grants is not known.
	BindsUnknown = "a binding can grant only what its writer has, unless the writer may bind the role; the recording does not show what this role grants"
	// BindsWritten is why a client may need the right to bind a role that it wrote. It does not if it has all rights that the
	// role grants, and to write the role it needs them, too, unless it may escalate.
	BindsWritten = "a binding can grant only what its writer has, unless the writer may bind the role; the operator writes this role itself"
	// WritesUnknown is why a client may need the right to escalate: it writes a role of which not all rights are listed.
	WritesUnknown = "a role can grant only what its writer has, unless the writer may escalate; this role grants more rights than are listed"
)

const (
	// maxGiven is how many rights of a role are listed. A hand-written one has fewer, and a larger one has wildcards.
	maxGiven = 256
	// maxWrittenRoles is how many roles are remembered as written by the operator.
	maxWrittenRoles = 8 << 10
)

// ReasonClass is the class of the reason for an implied right. Reasons that decide whether it is needed are classes of their
// own.
func ReasonClass(because string) string {
	switch because {
	case "", GivenAway, Bound, BindsUnknown, BindsWritten, WritesUnknown:
		return because
	}
	return "other"
}

// rightsOfWriter returns the rights that the writer of a role needs: either to escalate, or all that the role grants. To make a role
// collect the rights of others, or to stop that, it needs all rights or escalate.
func rightsOfWriter(place Resource, old, role *unstructured.Unstructured) []Implied {
	escalate := Implied{Verb: "escalate", Resource: bare(place), Because: "a role can grant only what its writer has, unless the writer may escalate"}
	rights, all := givenAway(role, role.GetNamespace(), GivenAway)
	if !all || old != nil && isAggregated(old) {
		escalate.Because = WritesUnknown
	}
	return append([]Implied{escalate}, rights...)
}

// givenAway returns the rights that a role grants in a namespace; empty for the whole cluster. Only a ClusterRole can grant
// rights to URLs. It returns false if there are more than are listed, or may be, because the role collects those of others.
func givenAway(role *unstructured.Unstructured, namespace, because string) (rights []Implied, all bool) {
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
		for _, url := range list("nonResourceURLs") {
			for _, verb := range list("verbs") {
				if len(rights) == maxGiven {
					return rights, false
				}
				rights = append(rights, Implied{Verb: verb, Path: url, Because: because})
			}
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
						if len(rights) == maxGiven {
							return rights, false
						}
						place := Resource{Group: group, Resource: base, Subresource: subresource, Namespace: namespace, Name: name}
						rights = append(rights, Implied{Verb: verb, Resource: place, Because: because})
					}
				}
			}
		}
	}
	return rights, !isAggregated(role)
}

// isAggregated reports whether a controller adds the rules of other roles to a role.
func isAggregated(role *unstructured.Unstructured) bool {
	selectors, _, _ := unstructured.NestedSlice(role.Object, "aggregationRule", "clusterRoleSelectors")
	return len(selectors) > 0
}

// bare is a resource without the object.
func bare(r Resource) Resource {
	return Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: r.Namespace}
}

// blockedOwners returns the owners whose deletion the write blocks: OwnerReferencesPermissionEnforcement,
// which some distributions enable, requires the right to change their finalizers.
func (o *observer) blockedOwners(before *version, now client.Object, kind string) (rights []Implied) {
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
		rights = append(rights, Implied{Verb: "update", Resource: owner, Because: fmt.Sprintf("%s %s refers to its owner with blockOwnerDeletion", kind, now.GetName())})
	}
	return rights
}

// changedOwners returns the right to delete an object whose owner references a write has changed: with them it decides
// when the object is deleted. OwnerReferencesPermissionEnforcement requires it, but not of who creates the object.
func changedOwners(r *Request, before *version, now client.Object) []Implied {
	if r.Verb == "create" || r.Status == http.StatusCreated || before == nil || before.uid != string(now.GetUID()) || r.Change != nil && r.Change.None {
		return nil
	}
	old := before.object()
	if old == nil || equality.Semantic.DeepEqual(old.GetOwnerReferences(), now.GetOwnerReferences()) {
		return nil
	}
	return []Implied{{Verb: "delete", Resource: r.Resource, Because: fmt.Sprintf("this %s changed the owner references of the object", r.Verb)}}
}

// plain is a comparable owner reference, without pointers.
func plain(reference metav1.OwnerReference) metav1.OwnerReference {
	if reference.BlockOwnerDeletion == nil || !*reference.BlockOwnerDeletion {
		reference.Name = "" // one that does not block yet is not the same
	}
	reference.BlockOwnerDeletion, reference.Controller = nil, nil
	return reference
}

// bound returns the right to bind the role that a binding refers to, and what the role grants, as far as it was seen. Who has
// one of these does not need the other. A role with wildcards is better bound than had, unless the operator must have its rights
// to write it. The right to bind is checked in the namespace of the binding, even for a ClusterRole.
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
	key := keyOf(role)
	known := o.memory.find(key)
	role.Namespace = binding.GetNamespace()
	bind := Implied{Verb: "bind", Resource: role, Because: "a binding can grant only what its writer has, unless the writer may bind the role"}
	if o.roles[key] {
		bind.Because = BindsWritten
	}
	object := known.latest().unstructured()
	if object == nil {
		bind.Because = BindsUnknown
		return []Implied{bind}
	}
	rights, all := givenAway(object, binding.GetNamespace(), Bound)
	if !all || !o.roles[key] && slices.ContainsFunc(rights, hasWildcard) {
		bind.Because = BindsUnknown
		return []Implied{bind}
	}
	return append([]Implied{bind}, rights...)
}

func hasWildcard(right Implied) bool {
	place := right.Resource
	return slices.Contains([]string{right.Verb, place.Group, place.Resource, place.Subresource, place.Name}, "*") || strings.HasSuffix(right.Path, "*")
}

// resourceOf returns the resource of a kind, from earlier requests, or else by the usual rules.
func (o *observer) resourceOf(kind schema.GroupVersionKind) string {
	if resource, ok := o.resources[kind.GroupKind()]; ok {
		return resource
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural.Resource
}
