// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"strings"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations of autoscaling/v1 become fields of the spec in autoscaling/v2.
func TestAnnotationsThatSetTheSpec(t *testing.T) {
	for _, test := range []struct{ name, apiVersion, fields, want string }{
		{"behavior", "autoscaling/v1", `"f:autoscaling.alpha.kubernetes.io/behavior":{}`, "metadata.annotations.autoscaling.alpha.kubernetes.io/behavior spec.behavior"},
		{"metrics", "autoscaling/v1", `"f:autoscaling.alpha.kubernetes.io/metrics":{}`, "metadata.annotations.autoscaling.alpha.kubernetes.io/metrics spec.metrics"},
		{"the status", "autoscaling/v1", `"f:autoscaling.alpha.kubernetes.io/conditions":{}`, ""},
		{"another annotation", "autoscaling/v1", `"f:note":{}`, ""},
		{"the version in which it is just an annotation", "autoscaling/v2", `"f:autoscaling.alpha.kubernetes.io/behavior":{}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			entry := metav1.ManagedFieldsEntry{Manager: "kubectl-annotate", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: test.apiVersion, FieldsV1: &metav1.FieldsV1{}}
			entry.FieldsV1.SetRawBytes([]byte(`{"f:metadata":{"f:annotations":{` + test.fields + `}}}`))
			live := &autoscalingv2.HorizontalPodAutoscaler{}
			live.ManagedFields = []metav1.ManagedFieldsEntry{entry}
			var found []string
			for _, other := range ownershipOf(live, entriesOf("us")).others {
				for _, path := range topmost(other.added("HorizontalPodAutoscaler")) {
					found = append(found, fieldText(path))
				}
			}
			if got := strings.Join(found, " "); got != test.want || test.want != "" && !ConcernsSpec(entry) {
				t.Errorf("got %q", got)
			}
		})
	}
}
