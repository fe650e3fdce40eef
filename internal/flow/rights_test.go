// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestRights(t *testing.T) {
	for _, test := range []struct {
		kind, field, subresource string
		want                     bool
	}{
		{"Deployment", "spec.replicas", "", true},
		{"Deployment", "spec.replicasX", "", false},
		{"Deployment", "spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt", "", true},
		{"Deployment", "spec.template.metadata.annotations.other", "", false},
		{"AppService", "spec.size", "scale", true},
		{"AppService", "spec.size", "", false},
		{"Service", "spec.replicas", "", false},
		{"Pod", "spec.containers[].resources.limits.cpu", "resize", true},
		{"Pod", "spec.containers[].image", "resize", false},
	} {
		if got := hasRightTo(test.kind, test.field, test.subresource); got != test.want {
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
		if row := fmt.Sprintf("| %s | `%s` | %s |", right.Child, right.Field, how); !strings.Contains(string(page), row) {
			t.Errorf("docs/fleet.md lacks the row\n%s", row)
		}
	}
}
