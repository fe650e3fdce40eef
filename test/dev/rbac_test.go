// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// opdock runs a command in a project and returns what it prints.
func (p *project) opdock(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), testenv.Program(t), append(arguments, "--dir", p.dir)...)
	command.Env = p.environment(t)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("opdock %s: %v\n%s", strings.Join(arguments, " "), err, output)
	}
	return string(output)
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
