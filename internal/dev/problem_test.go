// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/project"
)

func TestProblem(t *testing.T) {
	s := &Session{Options: Options{Project: &project.Project{Dir: t.TempDir()}}}
	definition := object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ships.x.example.com}}")
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: captain}}")
	for name, test := range map[string]struct {
		step string
		err  error
		want Problem
	}{
		"compiler": {"build", fmt.Errorf("wrapped: %w", &buildError{"# x\n./a.go:1:2: wrong"}), Problem{Step: "build", Text: "the build failed", Lines: []string{"a.go:1:2: wrong"}}},
		"generator": {
			"generate", &generate.Error{Problems: []generate.Problem{{File: "api/v1/t.go", Line: 3, Column: 4, Message: "no"}}},
			Problem{Step: "generate", Text: "generating failed", Lines: []string{"api/v1/t.go:3:4: no"}},
		},
		"a generator that is too new": {
			"generate", &generate.Error{Problems: []generate.Problem{{File: "api/v1/t.go", Line: 3, Column: 4, Generator: "controller-gen", Message: "missing argument"}}},
			Problem{
				Step: "generate", Text: "generating failed", Lines: []string{"api/v1/t.go:3:4: controller-gen: missing argument"},
				Hint: "if the project uses older versions of these generators, run it with its files as they are: opdock dev --no-generate",
			},
		},
		"CRD":   {"apply", &refusedError{definition, errors.New("no")}, Problem{Step: "apply", Text: "the API server rejected CustomResourceDefinition ships.x.example.com", Lines: []string{"no"}}},
		"names": {"apply", &apply.RefusedError{Definition: definition, Err: errors.New("taken")}, Problem{Step: "apply", Text: "the API server rejected CustomResourceDefinition ships.x.example.com", Lines: []string{"taken"}}},
		"role":  {"apply", &refusedError{role, errors.New("no\nreally")}, Problem{Step: "apply", Text: "the API server rejected ClusterRole captain", Lines: []string{"no", "really"}}},
		"samples": {
			"samples", samplesError{errors.New("one"), errors.New("two")},
			Problem{Step: "samples", Text: "2 samples were not accepted", Lines: []string{"one", "two"}},
		},
		"manifests": {"build", &manifestsError{errors.New("a.yaml:1: no")}, Problem{Step: "apply", Text: "reading the manifests failed", Lines: []string{"a.yaml:1: no"}}},
		"missing": {
			"build", &manifestsError{hint.With(errors.New("a.yaml does not exist"), "make a")},
			Problem{Step: "apply", Text: "reading the manifests failed", Lines: []string{"a.yaml does not exist"}, Hint: "make a"},
		},
		"port": {"restart", &PortError{Port: 9443, Owner: "ship (pid 7)"}, Problem{Step: "restart", Text: "port 9443 is in use by ship (pid 7)", Hint: "stop that process, then press r or save a file"}},
		"webhooks": {
			"webhooks", &notServedError{port: 9443, err: errors.New("connection refused")},
			Problem{
				Step: "webhooks", Text: "the operator runs, but does not serve its webhooks on port 9443", Lines: []string{"connection refused"},
				Hint: "if the operator has a flag that turns webhooks on or sets their port, pass it after --",
			},
		},
		"lines of a CRD": {
			"apply", &refusedError{definition, errors.New("compilation failed:\n | self.foo > 1\n | .....^")},
			Problem{
				Step: "apply", Text: "the API server rejected CustomResourceDefinition ships.x.example.com",
				Lines: []string{"compilation failed:", " | self.foo > 1", " | .....^"},
			},
		},
		"while it builds": {"build", &stepError{"apply", errors.New("it rained")}, Problem{Step: "apply", Text: "apply failed", Lines: []string{"it rained"}}},
		"anything":        {"restart", errors.New("it rained"), Problem{Step: "restart", Text: "restart failed", Lines: []string{"it rained"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.problem(test.step, test.err)
			if got.Step != test.want.Step || got.Text != test.want.Text || got.Hint != test.want.Hint || !slices.Equal(got.Lines, test.want.Lines) {
				t.Errorf("got %+v, want %+v", *got, test.want)
			}
		})
	}
	long := s.problem("apply", errors.New(strings.Repeat("line\n", 30)))
	if len(long.Lines) != mostLines+1 || long.Lines[mostLines] != "… and 20 more lines" {
		t.Errorf("it has %q", long.Lines)
	}
	s.plan.fixedPort = true
	if port := s.problem("restart", &PortError{Port: 9443}); !strings.Contains(port.Hint, "--webhook-port") {
		t.Errorf("it does not say how the port could be another: %q", port.Hint)
	}
	s.process, _ = shell(t, "sleep 1000")
	if got := s.problem("build", &buildError{"x"}); got.Text != "the build failed; the previous operator keeps running" {
		t.Errorf("got %q", got.Text)
	}
	if got := s.problem(stepWebhooks, errors.New("x")); got.Text != "webhooks failed; the operator runs, but its webhooks are not all configured" {
		t.Errorf("got %q", got.Text)
	}
	if got := s.problem("samples", samplesError{errors.New("x")}); strings.Contains(got.Text, "keeps running") {
		t.Errorf("got %q", got.Text)
	}
}

// An operator whose webhooks could not be configured is new, and was not awaited yet.
func TestWhatAFailedRoundLeaves(t *testing.T) {
	for step, awaits := range map[string]bool{stepWebhooks: true, stepApply: false, stepRestart: false} {
		left := leftAfter(step, workWebhooks|workAwait|workSamples)
		if left.has(workAwait) != awaits || !left.has(workWebhooks) || !left.has(workSamples) {
			t.Errorf("after %s, it leaves %b", step, left)
		}
	}
}

func TestEndWithoutALog(t *testing.T) {
	if got, want := (&EndedError{How: "exited with status 0"}).Error(), "the operator exited with status 0, and printed nothing before"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
