// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"slices"
	"testing"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/project"
)

func TestGeneratedText(t *testing.T) {
	for want, result := range map[string]generate.Result{
		"nothing to generate":             {Skipped: true},
		"generated files unchanged":       {Files: 4},
		"generated a.go":                  {Files: 4, Changes: []generate.Change{{Path: "a.go"}}},
		"generated a.go and b.yaml":       {Files: 4, Changes: []generate.Change{{Path: "a.go"}, {Path: "b.yaml"}}},
		"generated a.go and 2 more files": {Files: 4, Changes: []generate.Change{{Path: "a.go"}, {Path: "b.yaml"}, {Path: "c.yaml"}}},
		"generated a.go and removed b.yaml, because no type or marker generates it any more": {
			Files: 4, Changes: []generate.Change{{Path: "a.go"}, {Path: "b.yaml", Kind: generate.Leftover}},
		},
		"removed a.yaml and b.yaml, because no type or marker generates them any more": {
			Files: 4, Changes: []generate.Change{{Path: "a.yaml", Kind: generate.Leftover}, {Path: "b.yaml", Kind: generate.Leftover}},
		},
	} {
		if got := generatedText(&result); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestGeneratorsThatTheMakefileLeavesOut(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"Makefile": "manifests:\n\tcontroller-gen crd paths=./...\n", "config/rbac/role.yaml": "kind: Role\n"})
	s := &Session{Options: Options{Project: &project.Project{Dir: dir, Layout: project.KubebuilderOlder}}}
	if got := s.generators(); !slices.Equal(got, []string{"deepcopy", "crd"}) {
		t.Errorf("a role that is written by hand: got %q", got)
	}
	write(t, dir, map[string]string{"Makefile": "manifests:\n\tcontroller-gen crd rbac:roleName=manager-role webhook paths=./...\n"})
	if got := s.generators(); !slices.Equal(got, []string{"deepcopy", "crd", "rbac", "webhook"}) {
		t.Errorf("one that is generated: got %q", got)
	}
}

// What nothing comes of is told when something was generated, and not again while nothing changes.
func TestWarningsOfGenerators(t *testing.T) {
	result := &generate.Result{Warnings: []generate.Problem{{File: "api/v1/hat.go", Line: 7, Message: "no generator knows it"}}}
	screen := &said{}
	s := &Session{Options: Options{
		Project: &project.Project{Dir: t.TempDir()}, Screen: screen,
		Generate: func(context.Context, generate.Options) (*generate.Result, error) { return result, nil },
	}}
	for range 2 {
		todo := workGenerate
		if err := s.generate(t.Context(), &Round{}, &todo); err != nil || todo != 0 {
			t.Errorf("got %v, and %v is left to do", err, todo)
		}
		result.Skipped = true
	}
	if len(screen.texts) != 1 || screen.texts[0] != "warning: api/v1/hat.go:7:1: no generator knows it" {
		t.Errorf("it said %q", screen.texts)
	}
}

func TestRightsText(t *testing.T) {
	for want, counts := range map[string][2]int{
		"": {0, 0}, "identity and roles applied": {3, 0}, "1 role or binding pruned": {0, 1}, "identity and roles applied, 2 roles and bindings pruned": {1, 2},
	} {
		if got := rightsText(counts[0], counts[1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
