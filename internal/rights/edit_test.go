// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"errors"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// TestPlanEditsAtTheEndOfAFile adds a marker after a last line that does not end.
func TestPlanEditsAtTheEndOfAFile(t *testing.T) {
	const first, second = "// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list", "// +kubebuilder:rbac:groups=land,resources=harbours,verbs=get"
	dir := testenv.Dir(t, map[string]string{"a.go": "package a\n\n" + first})
	markers, err := ReadMarkers(dir)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := PlanEdits(dir, markers, []Grant{{Right: Right{"list", "sea", "frigates", ""}}, {Right: Right{"get", "land", "harbours", ""}}}, nil)
	if err != nil || len(plan.Changes) != 1 {
		t.Fatalf("got %v, %v", plan, err)
	}
	if got, want := string(plan.Changes[0].Content), "package a\n\n"+first+"\n"+second+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPlanEditsBesideARemovedMarker keeps a comment with what it describes.
func TestPlanEditsBesideARemovedMarker(t *testing.T) {
	const before, after = "package a\n\n// Reconcile is described here.\n", "func Reconcile() {}\n"
	dir := testenv.Dir(t, map[string]string{"a.go": before + "// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list\n" + after})
	markers, err := ReadMarkers(dir)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := PlanEdits(dir, markers, []Grant{{Right: Right{"get", "sea", "harbours", ""}}}, nil)
	if err != nil || len(plan.Changes) != 1 {
		t.Fatalf("got %v, %v", plan, err)
	}
	if got, want := string(plan.Changes[0].Content), before+"// +kubebuilder:rbac:groups=sea,resources=harbours,verbs=get\n"+after; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPlanEditsInTheNamespaceOfTheOperator has markers for a namespace that kustomize replaces by another one.
func TestPlanEditsInTheNamespaceOfTheOperator(t *testing.T) {
	const source = "package a\n\n// +kubebuilder:rbac:groups=\"\",namespace=system,resources=secrets,verbs=get\n// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list\n"
	grants := []Grant{
		{Right: Right{"list", "sea", "frigates", ""}}, {Right: Right{"get", "", "secrets", ""}, Namespaces: []string{"ship-system"}},
	}
	for name, test := range map[string]struct {
		manifest string
		want     string
	}{
		"no manifest has it": {"kind: ServiceAccount\nmetadata: {name: ship, namespace: ship-system}\n", ""},
		"a manifest has it": {
			"kind: Role\nmetadata: {name: ship, namespace: system}\n",
			"package a\n\n// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list\n// +kubebuilder:rbac:groups=\"\",resources=secrets,verbs=get\n",
		},
		"it is a manifest": {
			"kind: Namespace\nmetadata: {name: system}\n",
			"package a\n\n// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list\n// +kubebuilder:rbac:groups=\"\",resources=secrets,verbs=get\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := testenv.Dir(t, map[string]string{"a.go": source})
			markers, err := ReadMarkers(dir)
			if err != nil {
				t.Fatal(err)
			}
			Resettle(markers, objects(t, test.manifest), "ship-system")
			plan, err := PlanEdits(dir, markers, grants, nil)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, change := range plan.Changes {
				got.Write(change.Content)
			}
			if got.String() != test.want {
				t.Errorf("got %q, want %q", got.String(), test.want)
			}
		})
	}
}

// TestPlanEditsOfANamespacedProject adds markers for the namespaces that have some.
func TestPlanEditsOfANamespacedProject(t *testing.T) {
	const (
		inShop   = "// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list,namespace=shop\n"
		inSystem = "// +kubebuilder:rbac:groups=sea,resources=frigates,verbs=list,namespace=system,roleName=crew\n"
		wide     = "// +kubebuilder:rbac:groups=land,resources=harbours,verbs=get\n"
		patch    = "// +kubebuilder:rbac:groups=sea,resources=frigates/status,verbs=patch"
	)
	for name, test := range map[string]struct {
		before     string
		namespaces []string
		elsewhere  []Rule
		want       string
		err        error
	}{
		"one namespace":                   {inShop, []string{"shop"}, nil, inShop + patch + ",namespace=shop\n", nil},
		"beside a marker for the cluster": {inShop + wide, []string{"shop"}, nil, inShop + patch + ",namespace=shop\n" + wide, nil},
		"the operator's own":              {inSystem + wide, []string{"ship-system"}, nil, inSystem + patch + ",namespace=system,roleName=crew\n" + wide, nil},
		"both":                            {inShop + inSystem, []string{"shop", "ship-system"}, nil, inShop + patch + ",namespace=shop\n" + inSystem + patch + ",namespace=system,roleName=crew\n", nil},
		"one of them is granted":          {inShop + inSystem, []string{"shop", "ship-system"}, []Rule{rule("role", "shop", "sea", "frigates/status", "patch")}, inShop + inSystem + patch + ",namespace=system,roleName=crew\n", nil},
		"a namespace without markers":     {inShop + wide, []string{"other"}, nil, inShop + wide + patch + "\n", nil},
		"one of them has none":            {inShop + wide, []string{"shop", "other"}, nil, inShop + wide + patch + "\n", nil},
		"the whole cluster":               {inShop + wide, nil, nil, inShop + wide + patch + "\n", nil},
		"nothing for the whole cluster":   {inShop, nil, nil, "", ErrOnlyNamespaced},
	} {
		t.Run(name, func(t *testing.T) {
			const head = "package a\n\n"
			dir := testenv.Dir(t, map[string]string{"a.go": head + test.before})
			markers, err := ReadMarkers(dir)
			if err != nil {
				t.Fatal(err)
			}
			Resettle(markers, objects(t, "kind: Role\nmetadata: {name: a, namespace: shop}\n"), "ship-system")
			grants := []Grant{
				{Right: Right{"list", "sea", "frigates", ""}}, {Right: Right{"get", "land", "harbours", ""}}, {Right: Right{"patch", "sea", "frigates/status", ""}, Namespaces: test.namespaces},
			}
			others := []Rule{rule("role", "", "sea", "frigates", "list"), rule("role", "", "land", "harbours", "get")}
			plan, err := PlanEdits(dir, markers, grants, append(others, test.elsewhere...))
			if !errors.Is(err, test.err) {
				t.Fatalf("got %v, want %v", err, test.err)
			}
			if err == nil && (len(plan.Changes) != 1 || string(plan.Changes[0].Content) != head+test.want) {
				t.Errorf("got %+v, want %s", plan.Edits, head+test.want)
			}
		})
	}
}
