// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

func TestRemovals(t *testing.T) {
	const (
		template = `{"f:spec": {"f:template": %s}}`
		added    = `"k:{\"name\":\"%s\"}": {".": {}, "f:name": {}}`
	)
	item := func(name string) string { return fmt.Sprintf(added, name) }
	for _, test := range []struct{ name, fields, bystander, want string }{
		{"in a list with an item of ours", `{"f:volumes": {` + item("added") + `}}`, "", ""},
		{"with another field that is set", `{"f:hostNetwork": {}}`, "", ""},
		{"beside injected items", `{"f:initContainers": {` + item("added") + `, ` + item("more") + `}}`, "", "initContainers/2 initContainers/0"},
		{"in an injected item", `{"f:initContainers": {"k:{\"name\":\"injected\"}": {"f:image": {}}}}`, "", "initContainers/1"},
		{
			"in an object of another manager", `{"f:initContainers": {` + item("added") + `}}`,
			`{"f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}}}`, "initContainers/0",
		},
		{"beside an injected field of an object", `{"f:securityContext": {"f:runAsUser": {}}}`, "", "securityContext/runAsUser"},
		{"beside nothing", `{"f:imagePullSecrets": {` + item("added") + `}}`, "", ""},
		{"beside an injected annotation", `{"f:metadata": {"f:annotations": {"f:a/b~c": {}}}}`, "", "metadata/annotations/a~1b~0c"},
		{"a map that is one value", `{"f:nodeSelector": {}}`, "", ""},
		{
			"what may refer to it", `{"f:hostNetwork": {}, "f:initContainers": {` + item("added") + `}, "f:volumes": {` + item("added") + `}}`, "",
			"volumes/1 initContainers/0 hostNetwork",
		},
		{
			"deeper ones first",
			`{"f:initContainers": {` + item("added") + `}, "f:containers": {"k:{\"name\":\"sidecar\"}": {"f:env": {` + item("ADDED") + `}}}}`, "",
			"containers/1/env/1 initContainers/0",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := desiredOf(t, configuration)
			fields := test.fields
			if !strings.HasPrefix(fields, `{"f:metadata"`) {
				fields = `{"f:spec": ` + fields + `}`
			}
			live := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Annotations: map[string]string{AppliedAnnotation: want.hash},
				ManagedFields: []metav1.ManagedFieldsEntry{
					{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(owned)},
					{Manager: "other", Operation: "Update", FieldsV1: metav1.NewFieldsV1(fmt.Sprintf(template, fields))},
				},
			}}
			if test.bystander != "" {
				live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{Manager: "bystander", FieldsV1: metav1.NewFieldsV1(test.bystander)})
			}
			live.Spec.Template.Annotations = map[string]string{"a/b~c": "d", "injected": "x"}
			live.Spec.Template.Spec = corev1.PodSpec{
				HostNetwork:      true,
				NodeSelector:     map[string]string{"added": "x"},
				InitContainers:   []corev1.Container{{Name: "added"}, {Name: "injected", Image: "evil"}, {Name: "more"}},
				Containers:       []corev1.Container{{Name: "app", Image: "nginx"}, {Name: "sidecar", Env: []corev1.EnvVar{{Name: "INJECTED"}, {Name: "ADDED"}}}},
				Volumes:          []corev1.Volume{{Name: "data"}, {Name: "added"}, {Name: "injected"}},
				SecurityContext:  &corev1.PodSecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(true)},
				ImagePullSecrets: []corev1.LocalObjectReference{{Name: "added"}},
			}
			pass := &Pass{fieldOwner: "us", shapes: (&shapes{}).of(clientgoscheme.Scheme)}
			var got []string
			for _, operation := range pass.removals(live, want, pass.drift(live, want)) {
				path, ok := strings.CutPrefix(operation["path"].(string), "/spec/template/")
				if !ok || operation["op"] != "remove" {
					t.Errorf("got %v", operation)
				}
				got = append(got, strings.TrimPrefix(path, "spec/"))
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}
