// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/testenv"
)

// TestStandIn defines a stand-in for a kind that does not exist yet, and then makes the kind and objects of it.
func TestStandIn(t *testing.T) {
	w := newWorld(t)
	definition := fmt.Sprintf(`
kind: Boat.%s
status:
  replicas: "{{ .spec.replicas }}"
creates:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: "papers-of-{{ .metadata.name }}"}
  data: {owner: "{{ .metadata.uid }}"}
failure:
  status: {replicas: 0}
`, w.boatGroup())
	must(w.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "stand-ins", Labels: map[string]string{"opdock.dev/stand-in": "true"}},
		Data:       map[string]string{"boat": definition, "wrong": "status: {}"},
	}, metav1.CreateOptions{}))(t)
	w.awaitEvent(t, "stand-ins", "WaitingForKind")
	w.awaitEvent(t, "stand-ins", "BadStandIn")

	boats := w.installCRD(t)
	made := must(boats.Create(t.Context(), w.boat("ada", 3), metav1.CreateOptions{}))(t)
	failing := w.boat("eve", 3)
	failing.SetAnnotations(map[string]string{"opdock.dev/stand-in": "fail"})
	must(boats.Create(t.Context(), failing, metav1.CreateOptions{}))(t)
	hasReplicas := func(name string, want int64) func() error {
		return func() error {
			boat, err := boats.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			got, found, _ := unstructured.NestedInt64(boat.Object, "status", "replicas")
			if !found || got != want {
				return fmt.Errorf("the status is %v", boat.Object["status"])
			}
			return nil
		}
	}
	testenv.Eventually(t, "a boat gets its status", hasReplicas("ada", 3))
	testenv.Eventually(t, "another fails", hasReplicas("eve", 0))
	papers := must(w.configMap(t, "papers-of-ada"))(t)
	if papers.Data["owner"] != string(made.GetUID()) || len(papers.OwnerReferences) != 1 {
		t.Errorf("its papers are %+v", papers)
	}
	if _, err := w.configMap(t, "papers-of-eve"); err == nil {
		t.Error("one that fails has papers")
	}
	// A change of the spec is followed, and what it owns goes with the boat.
	patch := []byte(`{"spec":{"replicas":5}}`)
	must(boats.Patch(t.Context(), "ada", "application/merge-patch+json", patch, metav1.PatchOptions{}))(t)
	testenv.Eventually(t, "the status follows the spec", hasReplicas("ada", 5))
	try(t, boats.Delete(t.Context(), "ada", metav1.DeleteOptions{}))
	testenv.Eventually(t, "its papers go with it", func() error {
		_, err := w.configMap(t, "papers-of-ada")
		return gone(err)
	})
}
