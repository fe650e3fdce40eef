// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server gives the rules of an object a budget each time it checks one. The largest objects that the bounds
// allow must stay within it.
func TestLargestObjectsAreAccepted(t *testing.T) {
	s := realServer(t)

	t.Run("KAPP", func(t *testing.T) {
		var components, names []any
		for i := range 30 {
			name := fmt.Sprintf("%s-%02d", strings.Repeat("n", 37), i)
			components = append(components, map[string]any{
				"name":      name,
				"dependsOn": append([]any(nil), names...),
				"resource": map[string]any{
					"apiVersion": "robot.llleon.io/v1", "kind": "Robot", "metadata": map[string]any{"name": name},
				},
			})
			names = append(names, name)
		}
		kapp := sample(t, "kanggege_v1_kapp.yaml")
		kapp.Object["spec"] = map[string]any{"components": components}
		if _, err := s.try(t, kapp, metav1.NamespaceDefault); err != nil {
			t.Error(err)
		}
	})

	t.Run("Robot", func(t *testing.T) {
		var volumes, mounts []any
		for i := range 32 {
			name := fmt.Sprintf("%s-%02d", strings.Repeat("v", 60), i)
			volumes = append(volumes, map[string]any{"name": name, "emptyDir": map[string]any{}})
			mounts = append(mounts, map[string]any{"name": name, "mountPath": "/" + name})
		}
		containers := map[string][]any{}
		for _, kind := range []string{"i", "c"} {
			for i := range 16 {
				containers[kind] = append(containers[kind], map[string]any{
					"name": fmt.Sprintf("%s-%02d", strings.Repeat(kind, 60), i), "volumeMounts": mounts,
				})
			}
		}
		robot := sample(t, "robot_v1_robot.yaml")
		robot.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
			"volumes": volumes, "initContainers": containers["i"], "containers": containers["c"],
		}}}
		if _, err := s.try(t, robot, metav1.NamespaceDefault); err != nil {
			t.Error(err)
		}
	})

	t.Run("AppService", func(t *testing.T) {
		var ports []any
		for i := range int64(32) {
			ports = append(ports, map[string]any{
				"name": fmt.Sprintf("%s-%02d", strings.Repeat("p", 60), i), "port": i + 1, "nodePort": 30000 + i,
			})
		}
		app := sample(t, "app_v1_appservice.yaml")
		app.Object["spec"].(map[string]any)["ports"] = ports
		if _, err := s.try(t, app, metav1.NamespaceDefault); err != nil {
			t.Error(err)
		}
	})
}
