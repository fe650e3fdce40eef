// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestRights(t *testing.T) {
	container := fieldpath.KeyByFields("name", "app")
	port := func(number int) any { return fieldpath.KeyByFields("port", number, "protocol", "TCP") }
	for _, test := range []struct {
		kind        string
		path        []any
		subresource string
		want        bool
	}{
		{"Deployment", []any{"spec", "replicas"}, "", true},
		{"Deployment", []any{"spec", "replicasX"}, "", false},
		{"Deployment", []any{"spec", "template", "metadata", "annotations"}, "", true},
		{"Deployment", []any{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, "", true},
		{"Deployment", []any{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt.x"}, "", false},
		{"Deployment", []any{"spec", "template", "metadata", "annotations", "kubectl.kubernetes"}, "", false},
		{"Deployment", []any{"spec", "template", "metadata", "annotations", "kubectl"}, "", false},
		{"Deployment", []any{"spec", "template", "metadata", "annotations", "other"}, "", false},
		{"AppService", []any{"spec", "size"}, "scale", true},
		{"AppService", []any{"spec", "size"}, "", false},
		{"Service", []any{"spec", "replicas"}, "", false},
		{"Service", []any{"spec", "ipFamilyPolicy"}, "", true},
		{"Service", []any{"spec", "ipFamilies"}, "", true},
		{"Service", []any{"spec", "ports", port(80), "nodePort"}, "", true},
		{"Service", []any{"spec", "ports", port(80), "targetPort"}, "", false},
		{"Service", []any{"spec", "ports", port(81), "nodePort"}, "", false},
		{"Service", []any{"spec", "ports", port(81)}, "", false},
		{"Pod", []any{"spec", "containers", container, "resources", "limits", "cpu"}, "resize", true},
		{"Pod", []any{"spec", "containers", container}, "resize", true},
		{"Pod", []any{"spec", "containers", container, "image"}, "resize", false},
		{"Pod", []any{"spec", "initContainers", container, "resources", "limits", "cpu"}, "resize", true},
		{"Pod", []any{"spec", "initContainers", container, "resources", "limits", "cpu"}, "", false},
	} {
		// A Service has the port 80.
		if got := hasRight(test.kind, fieldpath.MakePathOrDie(test.path...), test.subresource, fieldpath.NewSet(fieldpath.MakePathOrDie("spec", "ports", port(80), "port"))); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

func TestRightsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range Rights {
		how := right.Holder
		if right.Subresource != "" {
			how += ", through the `" + right.Subresource + "` subresource"
		}
		if row := fmt.Sprintf("| %s | `%s` | %s |", right.Child, right.Field(), how); !strings.Contains(string(page), row) {
			t.Errorf("docs/fleet.md lacks the row\n%s", row)
		}
	}
}
