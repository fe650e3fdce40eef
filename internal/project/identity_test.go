// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func objectsIn(t *testing.T, text string) (objects []*unstructured.Unstructured) {
	t.Helper()
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// A kustomization for all namespaces may name the account without one, which API servers refuse.
func TestBindingsWithoutTheNamespaceOfTheAccount(t *testing.T) {
	const rest = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager-role}\n"
	var manifests []*unstructured.Unstructured
	for _, manifest := range []string{
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: captain}}",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: bare}\n" + rest + "subjects: [{kind: ServiceAccount, name: captain}]",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: near}\n" + rest + "subjects: [{kind: ServiceAccount, name: captain}]",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: elsewhere, namespace: other}\n" + rest + "subjects: [{kind: ServiceAccount, name: captain}]",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: cook}\n" + rest + "subjects: [{kind: ServiceAccount, name: cook}]",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: whole}\n" + rest + "subjects: [{kind: ServiceAccount, name: captain, namespace: default}]",
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), object); err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, object)
	}
	identity := IdentityIn(manifests)
	if got := names(identity.Objects); got != "ServiceAccount default/captain, ClusterRoleBinding bare, ClusterRoleBinding whole, RoleBinding default/near" {
		t.Errorf("the objects are %s", got)
	}
	if got := strings.Join(identity.Completed, ", "); got != "ClusterRoleBinding bare, RoleBinding near" {
		t.Errorf("completed are %s", got)
	}
	for _, one := range identity.Objects[1:] {
		subjects, _, _ := unstructured.NestedSlice(one.Object, "subjects")
		if subjects[0].(map[string]any)["namespace"] != "default" {
			t.Errorf("%s has %v", one.GetName(), subjects)
		}
	}
	if subjects, _, _ := unstructured.NestedSlice(manifests[1].Object, "subjects"); subjects[0].(map[string]any)["namespace"] != nil {
		t.Error("the manifests were changed")
	}
}

func TestIdentityOfAWorkload(t *testing.T) {
	const (
		deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: harbour}
spec: {template: {spec: {containers: [{name: manager}]}}}`
		named = `apiVersion: apps/v1
kind: Deployment
metadata: {name: manager, namespace: harbour}
spec: {template: {spec: {serviceAccount: captain, containers: [{name: manager}]}}}`
		namespace = `apiVersion: v1
kind: Namespace
metadata: {name: harbour}`
		account = `apiVersion: v1
kind: ServiceAccount
metadata: {name: captain, namespace: harbour}`
		metricsReader = `apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: harbour}`
		role = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager-role}`
		toDefault = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager-rolebinding}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager-role}
subjects: [{kind: ServiceAccount, name: default, namespace: harbour}]`
		toCaptain = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: captain}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager-role}
subjects: [{kind: ServiceAccount, name: captain, namespace: harbour}]`
	)
	for name, test := range map[string]struct {
		manifests     []string
		user, objects string
	}{
		"kubebuilder v2": {
			[]string{namespace, deployment, role, toDefault}, "system:serviceaccount:harbour:default",
			"Namespace harbour, ClusterRole manager-role, ClusterRoleBinding manager-rolebinding",
		},
		"kubebuilder v2, with another account": {
			[]string{deployment, metricsReader, role, toDefault}, "system:serviceaccount:harbour:default",
			"ClusterRole manager-role, ClusterRoleBinding manager-rolebinding",
		},
		"the field's old name": {
			[]string{named, account, metricsReader, role, toCaptain}, "system:serviceaccount:harbour:captain",
			"ServiceAccount harbour/captain, ClusterRole manager-role, ClusterRoleBinding captain",
		},
		"no rights":                  {[]string{namespace, deployment}, "", ""},
		"rights of another":          {[]string{deployment, role, toCaptain}, "", ""},
		"only rights, of default":    {[]string{role, toDefault}, "system:serviceaccount:harbour:default", "ClusterRole manager-role, ClusterRoleBinding manager-rolebinding"},
		"only rights, of several":    {[]string{role, toDefault, toCaptain}, "", ""},
		"only rights, of an account": {[]string{role, toCaptain}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			identity := IdentityIn(objectsIn(t, strings.Join(test.manifests, "\n---\n")))
			switch {
			case identity == nil && test.user != "":
				t.Error("there is none")
			case identity != nil && (identity.User() != test.user || names(identity.Objects) != test.objects):
				t.Errorf("it is %s by %s", identity.User(), names(identity.Objects))
			}
		})
	}
}

// A cluster creates no pods of a workload without its account.
func TestAccountThatTheManifestsLack(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: harbour, namespace: sea}\nspec: {template: {spec: {serviceAccountName: captain}}}"
	for name, test := range map[string]struct {
		manifests string
		want      string
	}{
		"it is there":           {deployment + "\n---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: captain, namespace: sea}}", " "},
		"it is missing":         {deployment, "Deployment harbour captain"},
		"in another namespace":  {deployment + "\n---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: captain}}", "Deployment harbour captain"},
		"the cluster's default": {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: harbour}}", " "},
		"no workload":           {"{apiVersion: v1, kind: ConfigMap, metadata: {name: harbour}}", " "},
	} {
		t.Run(name, func(t *testing.T) {
			workload, account := MissingAccount(objectsIn(t, test.manifests))
			if got := workload + " " + account; got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestRolesForOthers has roles that no manifest binds to the operator. It may bind them itself, to what it creates.
func TestRolesForOthers(t *testing.T) {
	const manifests = `{apiVersion: v1, kind: ServiceAccount, metadata: {name: captain, namespace: harbour}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: manager-role}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: crew}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: crew}}
---
{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: Role, metadata: {name: crew, namespace: harbour}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: view}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:node"}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: crew, namespace: elsewhere}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: cook}, roleRef: {kind: ClusterRole, name: crew}, subjects: [{kind: ServiceAccount, name: cook, namespace: harbour}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: captain}, roleRef: {kind: ClusterRole, name: manager-role}, subjects: [{kind: ServiceAccount, name: captain, namespace: harbour}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: node}, roleRef: {kind: ClusterRole, name: "system:node"}, subjects: [{kind: ServiceAccount, name: captain, namespace: harbour}]}
---
{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: Role, metadata: {name: captain, namespace: harbour}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: captain, namespace: harbour}, roleRef: {kind: Role, name: captain}, subjects: [{kind: ServiceAccount, name: captain, namespace: harbour}]}`
	identity := IdentityIn(objectsIn(t, manifests))
	const own = "ServiceAccount harbour/captain, ClusterRole manager-role, ClusterRole system:node, Role harbour/captain, " +
		"ClusterRoleBinding captain, ClusterRoleBinding node, RoleBinding harbour/captain"
	if got := names(identity.Objects); got != own {
		t.Errorf("the objects are %s", got)
	}
	if got := names(identity.Others); got != "ClusterRole crew, Role harbour/crew" {
		t.Errorf("the others are %s", got)
	}
	// A cluster has system:node, and may bind it.
	if got := names(identity.Roles()); got != "ClusterRole manager-role, Role harbour/captain, ClusterRole crew, Role harbour/crew" {
		t.Errorf("all roles are %s", got)
	}
	for _, role := range identity.Roles() {
		if role.GetAPIVersion() != "rbac.authorization.k8s.io/v1" { // API servers serve no other
			t.Errorf("%s is of %s", role.GetName(), role.GetAPIVersion())
		}
	}
}
