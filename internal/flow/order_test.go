// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// Managed fields do not show that items were reordered.
func TestDriftOfOrder(t *testing.T) {
	const (
		containers = "spec.template.spec.containers was reordered"
		ports      = `spec.template.spec.containers[name="app"].ports was reordered`
	)
	for _, test := range []struct {
		name   string
		change func(containers []corev1.Container) []corev1.Container
		want   string
	}{
		{"as configured", func(c []corev1.Container) []corev1.Container { return c }, ""},
		{"containers", func(c []corev1.Container) []corev1.Container { return []corev1.Container{c[1], c[0]} }, containers},
		{"an injected one before", func(c []corev1.Container) []corev1.Container { return []corev1.Container{{Name: "x"}, c[0], c[1]} }, ""},
		{"an injected one between", func(c []corev1.Container) []corev1.Container { return []corev1.Container{c[0], {Name: "x"}, c[1]} }, ""},
		{"an injected one and the others reordered", func(c []corev1.Container) []corev1.Container {
			return []corev1.Container{c[1], {Name: "x"}, c[0]}
		}, containers},
		{"ports with two keys", func(c []corev1.Container) []corev1.Container {
			c[1].Ports[0], c[1].Ports[1] = c[1].Ports[1], c[1].Ports[0]
			return c
		}, ports},
		{"both", func(c []corev1.Container) []corev1.Container {
			c[1].Ports[0], c[1].Ports[1] = c[1].Ports[1], c[1].Ports[0]
			return []corev1.Container{c[1], c[0]}
		}, containers + ", " + ports},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := desiredOf(t, configuration)
			live := &appsv1.Deployment{}
			if err := yaml.Unmarshal([]byte(configuration), live); err != nil {
				t.Fatal(err)
			}
			live.Spec.Template.Spec.Containers[1].Ports[0].Protocol = corev1.ProtocolTCP // a default
			live.Spec.Template.Spec.Containers = test.change(live.Spec.Template.Spec.Containers)
			live.Annotations = map[string]string{AppliedAnnotation: want.hash}
			live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(owned)}}
			pass := &Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}
			found := pass.drift(live, want)
			if got := found.describe(live, "us"); got != test.want || found.none() != (test.want == "") || (found.signature() == "") != (test.want == "") {
				t.Errorf("got %q, none: %v", got, found.none())
			}
			// Admission puts the items into this order, so another apply would not help.
			pass.shapes.keepOrder(live.UID, want.hash)
			if !pass.drift(live, want).none() {
				t.Error("an order that the server does not keep is drift")
			}
		})
	}
}

// A contest is about the same fields, so they must be named in the same order each time.
func TestItemsWithDefaultKeys(t *testing.T) {
	for _, test := range []struct {
		key  []any
		item map[string]any
		want bool
	}{
		{[]any{"port", 80, "protocol", "TCP"}, map[string]any{"port": 80}, true},
		{[]any{"port", 80, "protocol", "UDP"}, map[string]any{"port": 80}, false},
		{[]any{"host", "a", "path", "/"}, map[string]any{"host": "a"}, true},
		{[]any{"host", "", "path", "/b"}, map[string]any{"path": "/b"}, true},
		{[]any{"host", "a", "path", "/b"}, map[string]any{"path": "/b"}, false},
	} {
		element := fieldpath.PathElement{Key: fieldpath.KeyByFields(test.key...)}
		if got := standsFor(element, test.item); got != test.want {
			t.Errorf("%v stands for %v: %t", element, test.item, got)
		}
	}
}

func TestSeveralListsAreReordered(t *testing.T) {
	const (
		configuration = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, " +
			"spec: {template: {spec: {containers: [{name: a}, {name: b}], initContainers: [{name: a}, {name: b}]}}}}"
		items = `{"k:{\"name\":\"a\"}":{".":{},"f:name":{}},"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}`
		owned = `{"f:metadata":{"f:annotations":{"f:opdock.dev/applied":{}}},"f:spec":{"f:template":{"f:spec":{"f:containers":` + items + `,"f:initContainers":` + items + `}}}}`
		want  = ".spec.template.spec.containers\n.spec.template.spec.initContainers\n"
	)
	reordered := []corev1.Container{{Name: "b"}, {Name: "a"}}
	live := &appsv1.Deployment{}
	live.Spec.Template.Spec = corev1.PodSpec{Containers: reordered, InitContainers: reordered}
	live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(owned)}}
	pass := &Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}
	live.Annotations = map[string]string{AppliedAnnotation: desiredOf(t, configuration).hash}
	for range 30 {
		if got := pass.drift(live, desiredOf(t, configuration)).signature(); got != want {
			t.Fatalf("got %q", got)
		}
	}
}
