// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
)

// grants reports whether the operator's manifests grant it a right, judging by the rules alone.
func (s *Session) grants(verb, resource, group, namespace string) bool {
	return grantedBy(s.granted.Load(), verb, resource, group, namespace)
}

func grantedBy(identity *project.Identity, verb, resource, group, namespace string) bool {
	if identity == nil {
		return false
	}
	return slices.ContainsFunc(identity.Objects, func(object *unstructured.Unstructured) bool {
		switch object.GetKind() {
		case "ClusterRole":
		case "Role":
			if object.GetNamespace() != namespace {
				return false
			}
		default:
			return false
		}
		return roleAllows(object, verb, resource, group)
	})
}

func roleAllows(role *unstructured.Unstructured, verb, resource, group string) bool {
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	return slices.ContainsFunc(mapsIn(rules), func(rule map[string]any) bool {
		_, named := rule["resourceNames"]
		return !named && allows(rule["verbs"], verb) && allows(rule["apiGroups"], group) && allows(rule["resources"], resource)
	})
}

// rolesOfPeople are the names of roles that are for users of the operator. A cluster's administrator binds them.
var rolesOfPeople = regexp.MustCompile(`(?i)\b(editor|viewer|admin|reader|edit|view)\b`)

// unboundRoles are the roles among manifests that no binding refers to, as after the binding was removed by mistake.
func unboundRoles(all []*unstructured.Unstructured) (roles []*unstructured.Unstructured) {
	bound := map[string]bool{}
	for _, object := range all {
		if kind := object.GetKind(); kind == "RoleBinding" || kind == "ClusterRoleBinding" {
			role, _, _ := unstructured.NestedStringMap(object.Object, "roleRef")
			bound[role["kind"]+"/"+role["name"]] = true
		}
	}
	for _, object := range all {
		if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" || bound[kind+"/"+object.GetName()] || rolesOfPeople.MatchString(object.GetName()) {
			continue
		}
		aggregated := slices.ContainsFunc(slices.Collect(maps.Keys(object.GetLabels())), func(label string) bool {
			return strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
		})
		if !aggregated {
			roles = append(roles, object)
		}
	}
	return roles
}

// unboundRole names a role of the manifests that has a right, and that no binding refers to; empty if there is none.
func (s *Session) unboundRole(verb, resource, group string) string {
	if roles := s.unbound.Load(); roles != nil {
		for _, role := range *roles {
			if roleAllows(role, verb, resource, group) {
				return role.GetKind() + " " + role.GetName()
			}
		}
	}
	return ""
}

func allows(list any, wanted string) bool {
	all, _ := list.([]any)
	return slices.ContainsFunc(all, func(one any) bool { return one == wanted || one == "*" })
}

// deniedError names controllers that have not started because the operator lacks rights.
type deniedError struct{ controllers []string }

func (e *deniedError) Error() string {
	text := plural(len(e.controllers), "controller has", "controllers have") + " not started"
	names := slices.DeleteFunc(slices.Clone(e.controllers), func(name string) bool { return name == "" })
	if len(names) > 0 {
		text += " (" + strings.Join(names, ", ") + ")"
	}
	return text + ": the operator is not allowed to list or watch what it needs"
}

// deniedHint explains what to do about missing rights.
const deniedHint = "the missing rights follow; the operator is restarted when its roles change"
