// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func mustParse(t *testing.T, text string) []exclusion {
	t.Helper()
	list, err := parseLeftOut([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func specsNamed(names ...string) (specs []spec) {
	for _, name := range names {
		specs = append(specs, spec{Name: name, State: passed})
	}
	return specs
}

func TestChoose(t *testing.T) {
	specs := specsNamed("[sig-apps] Job a [Conformance]", "[sig-apps] Job b [Conformance]", "[sig-cli] Kubectl logs [Conformance]")
	chosen, err := choose(specs, mustParse(t, `[{reason: No container., patterns: ['Kubectl logs', 'Job b']}]`))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(chosen.run, []string{"[sig-apps] Job a [Conformance]"}) || chosen.leftOut["[sig-apps] Job b [Conformance]"] != "No container." {
		t.Errorf("chosen: %+v", chosen)
	}
	if all := chosen.with(specs[:1]); len(all) != 3 || all[1].State != leftOut || all[0].State != passed {
		t.Errorf("all: %+v", all)
	}
	for name, test := range map[string]struct{ list, says string }{
		"an unused entry": {`[{reason: r, patterns: ['Job', 'CronJob']}]`, `no Conformance spec matches "CronJob"`},
		"two reasons":     {`[{reason: r, patterns: ['Job']}, {reason: s, patterns: ['Job a']}]`, "two reasons"},
	} {
		if _, err := choose(specs, mustParse(t, test.list)); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, list := range map[string]string{
		"no reason": `[{patterns: [a]}]`, "no pattern": `[{reason: r}]`, "a bad pattern": `[{reason: r, patterns: ['(']}]`,
		"an unknown field": `[{reason: r, patterns: [a], pattern: b}]`,
	} {
		if _, err := parseLeftOut([]byte(list)); err == nil || !strings.Contains(err.Error(), leftOutPath) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReport(t *testing.T) {
	ran, err := parseReport([]byte(`[{"SpecReports": [
		{"LeafNodeType": "BeforeSuite", "State": "passed"},
		{"ContainerHierarchyTexts": ["[sig-cli] Kubectl", "logs"], "LeafNodeType": "It", "LeafNodeText": "b [Conformance]", "State": "failed", "RunTime": 1234567890, "Failure": {"Message": "expected"}},
		{"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It", "LeafNodeText": "a [Conformance]", "State": "passed", "RunTime": 5000000},
		{"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It", "LeafNodeText": "skips itself", "State": "skipped", "RunTime": 5000000},
		{"ContainerHierarchyTexts": ["[sig-apps] Job"], "LeafNodeType": "It", "LeafNodeText": "not selected", "State": "skipped"}
	]}]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(ran) != 3 || ran[0].Name != "[sig-apps] Job a [Conformance]" || ran[1].State != "skipped" || ran[2].group() != "cli" || ran[2].Seconds != 1.23 {
		t.Errorf("ran %+v", ran)
	}
	if err := sameSpecs([]string{ran[0].Name, ran[1].Name, ran[2].Name}, ran); err != nil {
		t.Error(err)
	}
	if err := sameSpecs([]string{ran[0].Name, ran[1].Name, "another"}, ran); err == nil || !strings.Contains(err.Error(), "did not run: another") || !strings.Contains(err.Error(), "not chosen") {
		t.Errorf("unexpected specs: %v", err)
	}
	if _, err := parseReport([]byte(`[{"SpecReports": [{"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed", "Failure": {"Message": "no nodes"}}]}]`)); err == nil || !strings.Contains(err.Error(), "no nodes") {
		t.Errorf("a suite that does not start: %v", err)
	}
	if _, err := parseReport([]byte(`[{"SpecRep`)); err == nil {
		t.Error("a truncated report was accepted")
	}
}

// TestRewrite changes the list after a run. Specs that it adds lose their results. Specs that it removes must run
// first.
func TestRewrite(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{here, "docs"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	specs := append(specsNamed("[sig-apps] Job a [Conformance]", "[sig-apps] Job b [Conformance]"), spec{Name: "[sig-cli] Kubectl logs [Conformance]", State: leftOut})
	specs[1].State, specs[1].Failure = "failed", "no container"
	if err := (results{"direct": {Kubernetes: "v1", Specs: specs}}).write(resultsPath); err != nil {
		t.Fatal(err)
	}
	if err := rewrite(mustParse(t, `[{reason: No container., patterns: ['Kubectl logs', 'Job b']}]`)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(pagePath)
	if err != nil || !strings.Contains(string(text), "| all | 3 | 1 | 0 | 2 |") || strings.Contains(string(text), "Failed:") {
		t.Errorf("%v, the page is\n%s", err, text)
	}
	if err := rewrite(mustParse(t, `[{reason: No container., patterns: ['Job b']}]`)); err == nil || !strings.Contains(err.Error(), "run make conformance") {
		t.Errorf("a spec that did not run: %v", err)
	}
}

// TestPageIsOfTheResults fails if the page or the list of left out specs changed without a run.
func TestPageIsOfTheResults(t *testing.T) {
	t.Chdir("../..")
	exclusions, err := readLeftOut(leftOutPath)
	if err != nil {
		t.Fatal(err)
	}
	all, err := readResults(resultsPath)
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"direct", "lens"} {
		run, found := all[way]
		if !found {
			t.Errorf("%s has no run %q", resultsPath, way)
		}
		chosen, err := choose(run.Specs, exclusions)
		if err != nil {
			t.Errorf("%s: %v", way, err)
		}
		for _, s := range run.Specs {
			if _, out := chosen.leftOut[s.Name]; out != (s.State == leftOut) {
				t.Errorf("%s: %s is %s in the results; run make conformance", way, s.Name, s.State)
			}
		}
	}
	want, err := page(all, exclusions)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(pagePath); err != nil || string(have) != want {
		t.Errorf("%s differs from the page that make conformance writes: %v", pagePath, err)
	}
}
