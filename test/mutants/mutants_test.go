// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/prove/scenario"
	"github.com/opdock/opdock/prove"
)

const root = "../.."

// TestMutantsStillApply checks that each patch applies to the current code and changes only controllers.
func TestMutantsStillApply(t *testing.T) {
	all, err := mutants(filepath.Join(root, patches))
	if err != nil {
		t.Fatal(err)
	}
	const least = 20
	if len(all) < least {
		t.Errorf("there are %d mutants, want at least %d", len(all), least)
	}
	kinds := map[string]bool{}
	for _, m := range all {
		kinds[m.Kind] = true
		check := exec.CommandContext(t.Context(), "git", "apply", "--check", m.path)
		check.Dir = root
		if output, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s no longer applies; recreate the patch: %v\n%s", m.Name, err, output)
		}
		if !strings.HasPrefix(m.Name, m.Kind+"-") {
			t.Errorf("the name of %s does not begin with its kind, %s", m.Name, m.Kind)
		}
		if len(m.Files) == 0 {
			t.Errorf("%s changes nothing", m.Name)
		}
		for _, file := range m.Files {
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
			if !strings.HasPrefix(file, "internal/controller/"+m.Kind+"/") && !strings.HasPrefix(file, "internal/flow/") {
				t.Errorf("%s changes %s, which is not part of the controller", m.Name, file)
			}
		}
		for _, family := range m.Families {
			if !slices.Contains(prove.Families(), family) {
				t.Errorf("%s names the family %q, which does not exist", m.Name, family)
			}
		}
		if _, err := scenario.Load(filepath.Join(root, scenarios, m.Kind+".yaml")); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
	if len(kinds) != 5 {
		t.Errorf("there are mutants of %d kinds, want all five", len(kinds))
	}
}

// TestPageIsCurrent checks that docs/mutants.md matches the results.
func TestPageIsCurrent(t *testing.T) {
	all, err := mutants(filepath.Join(root, patches))
	if err != nil {
		t.Fatal(err)
	}
	results, err := read(filepath.Join(root, resultsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, known := results[m.Name]; !known {
			t.Logf("%s has no result; run make mutants MUTANTS=%s", m.Name, m.Name)
		}
	}
	content, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	if string(content) != page(all, results) {
		t.Errorf("%s does not match the results; run make mutants", pageFile)
	}
}

func TestParse(t *testing.T) {
	got, err := parse("robot-late", "Broken: It is\n  late.\nKind: robot\nFamilies: crash,drift\n\ndiff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n")
	if err != nil || got.Broken != "It is late." || got.Kind != "robot" || !slices.Equal(got.Families, []string{"crash", "drift"}) || !slices.Equal(got.Files, []string{"x.go"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, bad := range []string{"", "Broken: a\nKind: robot\n\ndiff", "Kind: robot\nFamilies: crash\n\ndiff"} {
		if _, err := parse("bad", bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestPage(t *testing.T) {
	all := []mutant{{Name: "a", Broken: "A."}, {Name: "b", Broken: "B.", Families: []string{"crash"}}, {Name: "c", Broken: "C."}, {Name: "d", Broken: "D."}}
	got := page(all, map[string]result{
		"a": {Family: "drift", Verdict: "end-state", After: 61 * time.Second, Runs: 7}, "b": {Runs: 9}, "c": {Failed: "it does | not build"},
	})
	for _, want := range []string{
		"**1 of 3 mutants that were tried were killed**, half of them within 1m1s.",
		"| `a` | A. | drift | `end-state` | 1m1s | 7 |",
		"| `b` | B. | **not killed** by crash |  |  | 9 |",
		"| `c` | C. | **not judged**: it does / not build |  |  | 0 |",
		"| `d` | D. | not tried yet |  |  |  |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not contain %q:\n%s", want, got)
		}
	}
}
