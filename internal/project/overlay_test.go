// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"maps"
	"slices"
	"testing"
)

// layered is a project with a base that overlays give a namespace.
var layered = map[string]string{
	"go.mod": "module example.com/ferry\n",
	"manifests/base/kustomization.yaml": "resources: [deployment.yaml, rbac.yaml, crd.yaml, webhook.yaml]\n" +
		"patches: [{path: name.yaml, target: {kind: ValidatingWebhookConfiguration}}]\n",
	"manifests/base/deployment.yaml": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: ferry}, spec: {template: {spec: {serviceAccountName: ferry, containers: [{name: ferry}]}}}}\n",
	"manifests/base/rbac.yaml": "{apiVersion: v1, kind: ServiceAccount, metadata: {name: ferry}}\n---\n" +
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: ferry}}\n---\n" +
		"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: ferry}, roleRef: {kind: ClusterRole, name: ferry}, subjects: [{kind: ServiceAccount, name: ferry}]}\n",
	"manifests/base/crd.yaml":                      definition("Ferry", "ferries"),
	"manifests/base/webhook.yaml":                  "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: generated}}\n",
	"manifests/base/name.yaml":                     "- op: replace\n  path: /metadata/name\n  value: validator.ferry\n",
	"manifests/overlays/alone/kustomization.yaml":  "namespace: port\nresources: [../../base, namespace.yaml, ../../others]\n",
	"manifests/overlays/alone/namespace.yaml":      "{apiVersion: v1, kind: Namespace, metadata: {name: port}}\n",
	"manifests/overlays/a-part/kustomization.yaml": "namespace: elsewhere\nresources: [../../base]\n",
	"manifests/others/kustomization.yaml":          "resources: ['https://example.com/others.yaml']\n",
	"manifests/broken/kustomization.yaml":          "resources: [nowhere.yaml]\n",
	"manifests/e2e/kustomization.yaml":             "namespace: port\nresources: [../base, ../overlays/alone/namespace.yaml]\n",
}

// The kustomization that has all of the operator is the project; the files of its parts, read one by one, are not.
func TestManifestsOfAnOverlay(t *testing.T) {
	p := write(t, layered)
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	all, err := p.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(all), "Namespace port, CustomResourceDefinition ferries.other.io, ServiceAccount port/ferry, ClusterRole ferry, ClusterRoleBinding ferry, "+
		"Deployment port/ferry, ValidatingWebhookConfiguration validator.ferry"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := names(IdentityIn(all).Objects), "Namespace port, ServiceAccount port/ferry, ClusterRole ferry, ClusterRoleBinding ferry"; got != want {
		t.Errorf("the identity is %s", got)
	}
	if want := []string{
		"manifests/others/kustomization.yaml refers to https://example.com/others.yaml, which is not fetched",
	}; !slices.Equal(warnings, want) {
		t.Errorf("the warnings are %q", warnings)
	}
}

func TestOverlaysThatAreAsComplete(t *testing.T) {
	files := maps.Clone(layered)
	files["manifests/overlays/both/kustomization.yaml"] = "namespace: port\nresources: [../../base, namespace.yaml]\n"
	files["manifests/overlays/both/namespace.yaml"] = files["manifests/overlays/alone/namespace.yaml"]
	p := write(t, files)
	var warnings []string
	p.Warn = func(message string) { warnings = append(warnings, message) }
	if _, err := p.Manifests(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "using the kustomization in manifests/overlays/alone; others that run the operator: manifests/overlays/both"; !slices.Contains(warnings, want) {
		t.Errorf("the warnings are %q", warnings)
	}
}

// An overlay without CRDs is completed by those of the project.
func TestOverlayWithoutCRDs(t *testing.T) {
	files := maps.Clone(layered)
	files["crds/ferry.yaml"] = files["manifests/base/crd.yaml"]
	delete(files, "manifests/base/crd.yaml")
	files["manifests/base/kustomization.yaml"] = "resources: [deployment.yaml, rbac.yaml]\n"
	all, err := write(t, files).Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(all), "CustomResourceDefinition ferries.other.io, Namespace port, ServiceAccount port/ferry, ClusterRole ferry, ClusterRoleBinding ferry, Deployment port/ferry"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
