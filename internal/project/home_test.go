// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"slices"
	"strings"
	"testing"
)

const (
	homeless = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: ferry}, spec: {template: {spec: {serviceAccountName: ferry, containers: [{name: ferry}]}}}}\n---\n" +
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: ferry}}\n---\n" +
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: ferry}}\n"
	boundElsewhere = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: ferry}, roleRef: {kind: ClusterRole, name: ferry}, " +
		"subjects: [{kind: ServiceAccount, name: ferry, namespace: port}]}\n"
)

// Manifests for "kubectl apply --namespace port" name the namespace only where they bind the account.
func TestNamespaceThatOnlyBindingsName(t *testing.T) {
	const role = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: leader}}\n---\n" +
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: leader}, roleRef: {kind: Role, name: leader}, subjects: [{kind: ServiceAccount, name: ferry}]}\n"
	const other = "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %}, roleRef: {kind: ClusterRole, name: ferry}, " +
		"subjects: [{kind: ServiceAccount, name: ferry, namespace: %}]}\n"
	for name, test := range map[string]struct{ manifests, want string }{
		"one": {homeless + "---\n" + boundElsewhere, "ServiceAccount port/ferry, ClusterRole ferry, ClusterRoleBinding ferry"},
		"one, and a Role": {
			homeless + "---\n" + boundElsewhere + "---\n" + role,
			"ServiceAccount port/ferry, ClusterRole ferry, Role port/leader, ClusterRoleBinding ferry, RoleBinding port/leader",
		},
		"several":       {homeless + "---\n" + boundElsewhere + "---\n" + strings.ReplaceAll(other, "%", "harbour"), "ServiceAccount default/ferry"},
		"a placeholder": {homeless + "---\n" + strings.ReplaceAll(other, "%", "REPLACE_NAMESPACE"), "ServiceAccount default/ferry"},
	} {
		t.Run(name, func(t *testing.T) {
			p := write(t, map[string]string{"go.mod": "module example.com/ferry\n", "manifests/install.yaml": test.manifests})
			identity, err := p.Identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := names(identity.Objects); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// Of an installation for the cluster and one for a namespace, the first has the rights that the operator needs without flags.
func TestOverlayWhoseNamespaceOnlyBindingsName(t *testing.T) {
	p := write(t, map[string]string{
		"go.mod":                                    "module example.com/ferry\n",
		"manifests/base/kustomization.yaml":         "resources: [all.yaml]\n",
		"manifests/base/all.yaml":                   homeless,
		"manifests/cluster/kustomization.yaml":      "resources: [../base, binding.yaml]\n",
		"manifests/cluster/binding.yaml":            boundElsewhere,
		"manifests/in-namespace/kustomization.yaml": "resources: [../base, binding.yaml]\n",
		"manifests/in-namespace/binding.yaml": "{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: ferry}, roleRef: {kind: ClusterRole, name: ferry}, " +
			"subjects: [{kind: ServiceAccount, name: ferry}]}\n",
	})
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	identity, err := p.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(identity.Objects), "ServiceAccount port/ferry, ClusterRole ferry, ClusterRoleBinding ferry"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := "using the kustomization in manifests/cluster; others that run the operator: manifests/in-namespace"; !slices.Contains(warnings, want) {
		t.Errorf("the warnings are %q", warnings)
	}
}
