// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
)

// If the operator was undeployed beside its session, no marker is missing: it is already in the source.
func TestRightsThatTheManifestsGive(t *testing.T) {
	identity := &project.Identity{Objects: []*unstructured.Unstructured{
		object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [
  {apiGroups: [apps], resources: [deployments], verbs: [get, list]}, {apiGroups: [""], resources: [secrets], verbs: ["*"], resourceNames: [one]}]}`),
		object(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: harbour}, rules: [
  {apiGroups: [""], resources: ["*"], verbs: [create]}]}`),
	}}
	s := &Session{}
	s.granted.Store(identity)
	for line, given := range map[string]bool{
		`User "b" cannot list resource "deployments" in API group "apps" at the cluster scope`:          true,
		`User \"b\" cannot get resource \"deployments\" in API group \"apps\" in the namespace \"sea\"`: true,
		`User "b" cannot watch resource "deployments" in API group "apps" at the cluster scope`:         false,
		`User "b" cannot create resource "configmaps" in API group "" in the namespace "harbour"`:       true,
		`User "b" cannot create resource "configmaps" in API group "" in the namespace "sea"`:           false,
		`User "b" cannot create resource "configmaps" in API group "" at the cluster scope`:             false,
		`User "b" cannot get resource "secrets" in API group "" in the namespace "sea"`:                 false,
	} {
		var said string
		a := newAdvice(func(text string) { said = text })
		a.granted = s.grants
		a.roundIsOver()
		a.read(line)
		if got := strings.Contains(said, "although its role in the manifests allows it"); got != given || strings.Contains(said, "+kubebuilder:rbac") == given {
			t.Errorf("%s: it says %q", line, said)
		}
	}
	if grantedBy(nil, "get", "pods", "", "") {
		t.Error("there are no rules")
	}
}

// If the binding was removed, no marker is missing either. Roles for people are not the operator's.
func TestRolesWithoutABinding(t *testing.T) {
	role := func(kind, name, more string) *unstructured.Unstructured {
		return object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: "+kind+", metadata: {name: "+name+more+"}, rules: [{apiGroups: [''], resources: [pods], verbs: [list]}]}")
	}
	binding := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a}, roleRef: {kind: Role, name: bound}}")
	for name, test := range map[string]struct {
		roles []*unstructured.Unstructured
		want  string
	}{
		"unbound":         {[]*unstructured.Unstructured{role("ClusterRole", "bound", "")}, "ClusterRole bound allows it, but no binding in the manifests refers to that role"},
		"bound":           {[]*unstructured.Unstructured{role("Role", "bound", "")}, "add to its role: // +kubebuilder:rbac"},
		"for people":      {[]*unstructured.Unstructured{role("ClusterRole", "pod-viewer-role", "")}, "add to its role: // +kubebuilder:rbac"},
		"gathered by one": {[]*unstructured.Unstructured{role("ClusterRole", "users", ", labels: {rbac.authorization.k8s.io/aggregate-to-edit: 'true'}")}, "add to its role: // +kubebuilder:rbac"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Session{}
			unbound := unboundRoles(append(test.roles, binding))
			s.unbound.Store(&unbound)
			var said string
			a := newAdvice(func(text string) { said = text })
			a.unbound = s.unboundRole
			a.roundIsOver()
			a.read(`User "b" cannot list resource "pods" in API group "" at the cluster scope`)
			if !strings.Contains(said, test.want) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

// Some controllers log no name.
func TestNamesOfControllersWithoutRights(t *testing.T) {
	const why = ": the operator is not allowed to list or watch what it needs"
	for want, controllers := range map[string][]string{
		"1 controller has not started":                   {""},
		"1 controller has not started (mate)":            {"mate"},
		"2 controllers have not started (mate)":          {"mate", ""},
		"3 controllers have not started (captain, mate)": {"", "captain", "mate"},
	} {
		if got := (&deniedError{controllers}).Error(); got != want+why {
			t.Errorf("got %q, want %q", got, want+why)
		}
	}
}
