// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// opdock runs a command in a project and returns what it prints.
func (p *project) opdock(t *testing.T, arguments ...string) string {
	t.Helper()
	output, code := p.try(t, arguments...)
	if code != 0 {
		t.Fatalf("opdock %s exits with %d:\n%s", strings.Join(arguments, " "), code, output)
	}
	return output
}

// try does the same for a command that may fail.
func (p *project) try(t *testing.T, arguments ...string) (output string, code int) {
	t.Helper()
	command := exec.CommandContext(t.Context(), testenv.Program(t), append(arguments, "--dir", p.dir)...)
	command.Env = p.environment(t)
	said, err := command.CombinedOutput()
	if exited := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exited) {
		t.Fatalf("opdock %s: %v", strings.Join(arguments, " "), err)
	}
	return string(said), command.ProcessState.ExitCode()
}

// TestRightsOfAPlainProject derives the rights of an operator whose project has no service account and no role, and which reads
// its kubeconfig from a flag only.
func TestRightsOfAPlainProject(t *testing.T) {
	p := newProject(t, "plain")
	recorded := p.opdock(t, "rbac", "--record", "--quiet-period", "2s")
	for _, want := range []string{"with all rights, because its manifests have no service account", "list,watch,update  buoys.plain.example.com"} {
		if !strings.Contains(recorded, want) {
			t.Errorf("--record does not say %q:\n%s", want, recorded)
		}
	}
	if verified := p.opdock(t, "rbac", "--verify", "--quiet-period", "2s"); !strings.Contains(verified, "No request was refused.") {
		t.Errorf("--verify says\n%s", verified)
	}
}

// TestRightsOfAProjectWithWebhooks lets the samples pass the operator's own webhooks, which need a certificate and a free port.
func TestRightsOfAProjectWithWebhooks(t *testing.T) {
	p := newProject(t, "ship")
	p.opdock(t, "generate")
	recorded := p.opdock(t, "rbac", "--record", "--explain", "--quiet-period", "2s")
	// Evidence names the reconcile because the operator is built to mark it.
	if !strings.Contains(recorded, " in reconcile #") {
		t.Errorf("--record says\n%s", recorded)
	}
	if verified := p.opdock(t, "rbac", "--verify", "--quiet-period", "2s"); !strings.Contains(verified, "No request was refused.") {
		t.Errorf("--verify says\n%s", verified)
	}
}
