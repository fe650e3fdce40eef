// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// role is a role of a project's manifests.
type role struct {
	kind, namespace, name string
	labels                labels.Set
	rules                 []rbacv1.PolicyRule
	gathers               []metav1.LabelSelector
}

// knownRoles are roles that every cluster has, which bindings of operators refer to.
var knownRoles = map[string][]rbacv1.PolicyRule{
	"ClusterRole /cluster-admin": {
		{APIGroups: []string{all}, Resources: []string{all}, Verbs: []string{all}},
		{NonResourceURLs: []string{all}, Verbs: []string{all}},
	},
	"ClusterRole /system:auth-delegator": {
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	},
	"Role kube-system/extension-apiserver-authentication-reader": {
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"extension-apiserver-authentication"}, Verbs: []string{"get", "list", "watch"}},
	},
}

// FromObjects returns the rules that bindings grant, from roles among the objects. All bindings
// are assumed to be for the operator, like those of project.Identity.
func FromObjects(objects []*unstructured.Unstructured) (Granted, error) {
	var granted Granted
	roles, err := rolesIn(objects)
	if err != nil {
		return granted, err
	}
	var sources []string
	for _, object := range objects {
		kind := object.GetKind()
		if object.GroupVersionKind().Group != rbacv1.GroupName || kind != "ClusterRoleBinding" && kind != "RoleBinding" {
			continue
		}
		reference, _, _ := unstructured.NestedStringMap(object.Object, "roleRef")
		within := object.GetNamespace() // empty for a ClusterRoleBinding
		key := reference["kind"] + " /" + reference["name"]
		if reference["kind"] == "Role" {
			key = "Role " + within + "/" + reference["name"]
		}
		name := reference["kind"] + " " + reference["name"]
		rules, known := knownRoles[key]
		if i := slices.IndexFunc(roles, func(r *role) bool { return r.kind+" "+r.namespace+"/"+r.name == key }); i >= 0 {
			var gathered []string
			rules, gathered = gather(roles, roles[i])
			known = true
			granted.Bound = append(granted.Bound, gathered...)
		}
		granted.Bound = append(granted.Bound, reference["name"])
		if !known {
			granted.Notes = append(granted.Notes, fmt.Sprintf("%s, which %s %s refers to, is not among the manifests: its rules are not known", name, kind, object.GetName()))
			continue
		}
		if !slices.Contains(sources, name) {
			sources = append(sources, name)
		}
		for _, rule := range rules {
			granted.Rules = append(granted.Rules, Rule{PolicyRule: rule, Namespace: within, From: name})
		}
	}
	granted.Source = strings.Join(sources, ", ")
	return granted, nil
}

func rolesIn(objects []*unstructured.Unstructured) (roles []*role, err error) {
	for _, object := range objects {
		kind := object.GetKind()
		if object.GroupVersionKind().Group != rbacv1.GroupName || kind != "ClusterRole" && kind != "Role" {
			continue
		}
		// A Role has the same fields, and no aggregation.
		typed := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", kind, object.GetName(), err)
		}
		one := &role{kind: kind, namespace: typed.Namespace, name: typed.Name, labels: typed.Labels, rules: typed.Rules}
		if kind == "ClusterRole" {
			one.namespace = ""
		}
		if typed.AggregationRule != nil {
			one.gathers = typed.AggregationRule.ClusterRoleSelectors
		}
		roles = append(roles, one)
	}
	return roles, nil
}

// gather returns the rules of a role and of those that it aggregates, and the names of those.
func gather(roles []*role, of *role) (rules []rbacv1.PolicyRule, names []string) {
	rules = slices.Clone(of.rules)
	for i := range of.gathers {
		selector, err := metav1.LabelSelectorAsSelector(&of.gathers[i])
		if err != nil {
			continue // the API server takes no such role
		}
		for _, other := range roles {
			if other != of && other.kind == "ClusterRole" && selector.Matches(other.labels) {
				rules, names = append(rules, other.rules...), append(names, other.name)
			}
		}
	}
	return rules, names
}

// AttachMarkers adds the responsible markers to findings.
func (r *Report) AttachMarkers(markers []Marker) {
	for i := range r.Findings {
		finding := &r.Findings[i]
		if finding.Type == Missing || finding.Type == Refused {
			continue
		}
		for j := range markers {
			m := &markers[j]
			if m.Problem != nil || m.Place() == finding.From {
				continue
			}
			rule := m.granted()
			if slices.ContainsFunc(rule.atoms(), func(part atom) bool {
				return part.Group == finding.Group && part.Resource == finding.Resource && part.URL == finding.URL && slices.Contains(finding.Verbs, part.Verb)
			}) {
				finding.Markers = append(finding.Markers, m.Place())
			}
		}
	}
}
