// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/cluster/clustertest"
)

func TestScale(t *testing.T) {
	s := realServer(t)
	for _, test := range []struct{ file, field string }{
		{"app_v1_appservice.yaml", "size"},
		{"app_v1alpha1_appservice.yaml", "size"},
		{"kubegroup_v1_podcluster.yaml", "podReplicas"},
		{"robot_v1_robot.yaml", "replicas"},
	} {
		t.Run(test.file, func(t *testing.T) {
			namespace := clustertest.Namespace(t)
			object, err := s.apply(t, sample(t, test.file), namespace)
			if err != nil {
				t.Fatal(err)
			}
			client := s.kind(t, object, namespace)
			object.Object["status"] = map[string]any{"replicas": int64(1), "selector": "app=x,opdock.dev/part=y"}
			if _, err := client.UpdateStatus(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}

			scale, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{}, "scale")
			if err != nil {
				t.Fatal(err)
			}
			requireContains(t, "scale", scale.Object, map[string]any{
				"spec":   map[string]any{"replicas": object.Object["spec"].(map[string]any)[test.field]},
				"status": map[string]any{"replicas": int64(1), "selector": "app=x,opdock.dev/part=y"},
			})

			scale.Object["spec"] = map[string]any{"replicas": int64(7)}
			if _, err := client.Update(t.Context(), scale, metav1.UpdateOptions{}, "scale"); err != nil {
				t.Fatal(err)
			}
			scaled, err := client.Get(t.Context(), object.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			requireContains(t, "spec", scaled.Object["spec"], map[string]any{test.field: int64(7)})
			if scaled.GetGeneration() != object.GetGeneration()+1 {
				t.Errorf("scaling took the generation from %d to %d", object.GetGeneration(), scaled.GetGeneration())
			}
		})
	}
}

func TestStatusIsASubresource(t *testing.T) {
	s := realServer(t)
	for _, file := range sampleFiles(t) {
		object := sample(t, file)
		object.Object["status"] = map[string]any{"observedGeneration": int64(3)}
		tried, err := s.try(t, object, "default")
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if got, _, _ := unstructured.NestedInt64(tried.Object, "status", "observedGeneration"); got != 0 {
			t.Errorf("%s: creating an object could set its status", file)
		}
	}
}

func TestSelectableFields(t *testing.T) {
	s := realServer(t)
	for _, test := range []struct{ file, selector, other string }{
		{"app_v1_appservice.yaml", "spec.image=nginx:1.7.9", "spec.image=nginx:1.8"},
		{"app_v1alpha1_appservice.yaml", "spec.image=nginx:1.7.9", "spec.suspend=true"},
		{"kubegroup_v1_podcluster.yaml", "spec.image=nginx:1.29", "spec.suspend=true"},
		{"robot_v1_robot.yaml", "spec.deploymentName=robot-one", "spec.deploymentName=robot-two"},
		{"collector_v1_collector.yaml", "spec.suspend!=true", "spec.suspend=true"},
		{"kanggege_v1_kapp.yaml", "spec.suspend!=true", "spec.suspend=true"},
	} {
		t.Run(test.file, func(t *testing.T) {
			namespace := clustertest.Namespace(t)
			object, err := s.apply(t, sample(t, test.file), namespace)
			if err != nil {
				t.Fatal(err)
			}
			for selector, want := range map[string]int{test.selector: 1, test.other: 0} {
				list, err := s.kind(t, object, namespace).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
				if err != nil {
					t.Errorf("%s: %v", selector, err)
				} else if len(list.Items) != want {
					t.Errorf("%s picks %d objects, want %d", selector, len(list.Items), want)
				}
			}
		})
	}
}
