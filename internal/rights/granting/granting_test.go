// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package granting

import (
	"testing"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

// read reads the granted rights of a project that consists of files.
func read(t *testing.T, files map[string]string, against string) *Grants {
	t.Helper()
	found, err := project.Find(testenv.Dir(t, files))
	if err != nil {
		t.Fatal(err)
	}
	grants, err := Read(t.Context(), found, against)
	if err != nil {
		t.Fatal(err)
	}
	return grants
}

// TestMarkersOfTheNamespaceThatKustomizeSets has a marker for the namespace system, as projects of kubebuilder do.
func TestMarkersOfTheNamespaceThatKustomizeSets(t *testing.T) {
	grants := read(t, map[string]string{
		"go.mod":                            "module example.com/ship\n",
		"config/default/kustomization.yaml": "namespace: ship-system\nresources: [manager.yaml]\n",
		"config/default/manager.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: ship, namespace: system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ship, namespace: system}
spec:
  template:
    spec:
      serviceAccountName: ship
      containers: [{name: manager}]
`,
		"a.go": "package a\n\n// +kubebuilder:rbac:groups=\"\",namespace=system,resources=secrets,verbs=get\n",
	}, Markers)
	if rules := grants.Granted.Rules; len(rules) != 1 || rules[0].Namespace != "ship-system" {
		t.Errorf("got %v, want a rule in ship-system", rules)
	}
	if len(grants.Markers) != 1 || grants.Markers[0].Namespace != "system" {
		t.Errorf("got %v, want the marker as it is written", grants.Markers)
	}
}

// TestRolesOfAChartHoldInOneNamespace has a project with nothing but a chart, which does not say where it is installed.
func TestRolesOfAChartHoldInOneNamespace(t *testing.T) {
	chart := map[string]string{
		"go.mod": "module example.com/ship\n", "chart/Chart.yaml": "name: ship\n",
		"chart/templates/role.yaml": `kind: Role
metadata:
  name: ship
rules:
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
---
kind: RoleBinding
metadata:
  name: ship
roleRef:
  kind: Role
  name: ship
`,
	}
	grants := read(t, chart, Auto)
	if rules := grants.Granted.Rules; len(rules) != 1 || rules[0].Namespace != "default" || grants.Granted.Assumed != "default" || grants.Options.Namespace != "" {
		t.Errorf("got %v, assumed is %q, and the operator is in %q", rules, grants.Granted.Assumed, grants.Options.Namespace)
	}
	// Without rules to compare with, recordings show where the operator is.
	delete(chart, "chart/templates/role.yaml")
	if grants := read(t, chart, Auto); grants.Options.Namespace != "" {
		t.Errorf("the operator is in %q", grants.Options.Namespace)
	}
}
