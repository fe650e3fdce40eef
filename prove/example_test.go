// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/prove"
)

// A campaign in a test of a project, with its scenario in code.
func ExampleTest() {
	crew := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "crew"}, StringData: map[string]string{"captain": "nelson"}}
	victory := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Frigate", "metadata": map[string]any{"name": "victory"},
		"spec": map[string]any{"image": "nginx:1.29", "replicas": 2},
	}}
	_ = func(t *testing.T) { // func TestProve(t *testing.T)
		t.Helper()
		prove.Test(t, prove.Options{
			Dir: "../..", Families: []string{"crash", "drift"}, Runs: 10, StateDir: "../../bin/prove",
			Steps: []prove.Step{
				prove.Apply("create", crew, victory),
				prove.Wait("ready", victory, "Ready=True"),
				prove.Patch("another image", victory, `{"spec": {"image": "nginx:1.30"}}`),
				prove.DeleteAll("delete"),
			},
			Ignore: []prove.Ignore{{Verdict: "status", Object: "Frigate", Field: "status.lastSeen", Reason: "it is a heartbeat"}},
		})
	}
}
