// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

const (
	thingsModule = "module other.io/things\n\ngo 1.26\n"
	thingsSource = `// Package v1 has the kinds of another project.
package v1

// Group is the group of Lamps.
const Group = "other.io"
`
	thingsDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: lamps.other.io
spec:
  group: other.io
  names: {kind: Lamp, plural: lamps, singular: lamp, listKind: LampList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`
)

// installed is what is said about the CRD.
const installed = "installed CRD lamps.other.io from module other.io/things"

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newTug returns a project that needs a kind of another module, and the path for the CRD in that module.
func newTug(t *testing.T) (p *project, definition string) {
	t.Helper()
	p = newProject(t, "tug")
	things := filepath.Join(filepath.Dir(p.dir), "things")
	writeFile(t, filepath.Join(things, "go.mod"), thingsModule)
	writeFile(t, filepath.Join(things, "v1", "kinds.go"), thingsSource)
	module := filepath.Join(p.dir, "go.mod")
	content, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, module, string(content)+"\nrequire other.io/things v1.0.0\n\nreplace other.io/things => ../things\n")
	return p, filepath.Join(things, "config", "crd", "lamps.yaml")
}

// TestRightsOfAnOperatorThatNeedsAKindOfAnotherModule runs an operator of which one controller waits for a kind. Its requests show
// what it needs only once the CRD is installed.
func TestRightsOfAnOperatorThatNeedsAKindOfAnotherModule(t *testing.T) {
	p, definition := newTug(t)

	// Without the CRD, the controller never starts, although another one does.
	const waits = `the operator reconciled no Tug; controller tug did not start; the cluster does not have kind Lamp of other.io`
	recorded := p.opdock(t, "rbac", "--record", "--quiet-period", "1s")
	if !strings.Contains(recorded, waits) {
		t.Errorf("--record does not say %q:\n%s", waits, recorded)
	}
	verified, code := p.try(t, "rbac", "--verify", "--quiet-period", "1s")
	if code != 1 || !strings.Contains(verified, waits) || !strings.Contains(verified, "add the CRD to a folder of the project") || strings.Contains(verified, "No request was refused") {
		t.Errorf("--verify exits with %d and says\n%s", code, verified)
	}

	writeFile(t, definition, thingsDefinition)
	recorded = p.opdock(t, "rbac", "--record", "--quiet-period", "1s")
	for _, want := range []string{installed, "list,watch,create  lamps.other.io"} {
		if !strings.Contains(recorded, want) {
			t.Errorf("--record does not say %q:\n%s", want, recorded)
		}
	}
	verified = p.opdock(t, "rbac", "--verify", "--quiet-period", "1s")
	for _, want := range []string{installed, "No request was refused."} {
		if !strings.Contains(verified, want) {
			t.Errorf("--verify does not say %q:\n%s", want, verified)
		}
	}
}

// TestCampaignOnAnOperatorThatNeedsAKindOfAnotherModule disturbs what the operator does once the CRD is installed.
func TestCampaignOnAnOperatorThatNeedsAKindOfAnotherModule(t *testing.T) {
	p, definition := newTug(t)
	prove := []string{"prove", "--families", "crash", "--budget", "3m", "--parallel", "1"}
	const waits = "a controller waits for kind Lamp of other.io"
	if output, code := p.try(t, prove...); code != 2 || !strings.Contains(output, waits) {
		t.Errorf("without the CRD, prove exits with %d and says\n%s", code, output)
	}
	writeFile(t, definition, thingsDefinition)
	output, code := p.try(t, prove...)
	if code != 0 || strings.Count(output, installed) != 1 || strings.Contains(output, waits) {
		t.Errorf("prove exits with %d and says\n%s", code, output)
	}
}

// TestSessionOfAnOperatorThatNeedsAKindOfAnotherModule has a controller that reports the kind when the samples are applied, and
// another one has run for a while.
func TestSessionOfAnOperatorThatNeedsAKindOfAnotherModule(t *testing.T) {
	p, definition := newTug(t)
	writeFile(t, definition, thingsDefinition)
	p.start(t, "--samples")
	starts := regexp.MustCompile(`Starting workers.*"controller":"tug"`)
	testenv.Eventually(t, "the controller starts", func() bool { return starts.MatchString(p.log()) })
	if said := p.said.String(); !strings.Contains(said, installed) {
		t.Errorf("it says\n%s", said)
	}
	// It does not take until the operator gives up and ends.
	for len(p.rounds) > 0 {
		if round := p.next(t); round.Problem != nil {
			t.Errorf("%s: %q", round.Problem.Text, round.Problem.Lines)
		}
	}
}
