// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// makes runs make in a project that has one kind.
func makes(t *testing.T, args ...string) (screen string, err error) {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("there is no make")
	}
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	must(t)(CreateAPI(frigate(dir)))
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Dir = dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(one string) bool {
		return strings.HasPrefix(one, "KUBEBUILDER_ASSETS=") || strings.HasPrefix(one, "MAKE")
	})
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestMakeTestFailsWithoutAnAPIServer(t *testing.T) {
	for name, finder := range map[string]string{"it cannot be had": "false", "nothing is found": "true"} {
		t.Run(name, func(t *testing.T) {
			// What comes before takes long, and is not what this is about.
			screen, err := makes(t, "-o", "manifests", "-o", "generate", "-o", "fmt", "-o", "vet", "OPDOCK=", "SETUP_ENVTEST="+finder, "test")
			if err == nil || strings.Contains(screen, "coverage") {
				t.Errorf("tests that skip themselves have passed:\n%s", screen)
			}
		})
	}
}

func TestMakeGeneratesOnce(t *testing.T) {
	for _, target := range []string{"build", "test", "manifests", "generate"} {
		screen, err := makes(t, "--dry-run", "OPDOCK=opdock", target)
		if count := strings.Count(screen, "opdock generate\n"); err != nil || count != 1 {
			t.Errorf("make %s generates %d times (%v):\n%s", target, count, err, screen)
		}
	}
}

func TestMakeHelpListsAll(t *testing.T) {
	screen, err := makes(t, "help")
	if err != nil {
		t.Fatalf("%v\n%s", err, screen)
	}
	for _, want := range []string{"\nDevelopment\n", "\nDeployment\n", "  make test-e2e  ", "  make prove  ", "  make docker-buildx  "} {
		if !strings.Contains(screen, want) {
			t.Errorf("it lacks %q:\n%s", want, screen)
		}
	}
}
