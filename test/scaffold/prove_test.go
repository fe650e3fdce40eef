// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCampaign runs make prove in a project with one kind, with the Opdock of this repository. It only builds the campaign unless
// OPDOCK_TEST_DEFECTS=all is set, because test/prove has campaigns already, and this one takes most of a minute.
func TestCampaign(t *testing.T) {
	dir := t.TempDir()
	opdock(t, dir, "init --domain example.com --repo example.com/yard --project-name yard")
	opdock(t, dir, "create api --group ship --version v1 --kind Frigate")
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	campaign := filepath.Join(dir, "test", "prove")
	inside(t, campaign, "go", "mod", "edit", "-replace", "github.com/opdock/opdock="+repository)
	sums, err := os.ReadFile(filepath.Join(repository, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(campaign, "go.sum"), sums, 0o600); err != nil { // so that nothing is downloaded
		t.Fatal(err)
	}
	arguments, want := []string{"env", "GOPROXY=off", "GOFLAGS=-run=^$", "make", "OPDOCK=true", "prove"}, "no tests to run"
	if os.Getenv("OPDOCK_TEST_DEFECTS") == "all" {
		arguments, want = slices.Delete(arguments, 2, 3), "--- PASS: TestOperatorRecovers"
	}
	screen := inside(t, dir, arguments...)
	if !strings.Contains(screen, want) || strings.Contains(screen, "SetLogger") { // a complaint of controller-runtime
		t.Errorf("there is no %q, or more than that:\n%s", want, screen)
	}
	t.Log(screen)
}
