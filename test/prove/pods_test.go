// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

// TestImagesThatCannotBePulled is about an operator that calls its custom resource ready as soon as it has created the Deployment.
// Everything is well in the end, so that is the only finding.
func TestImagesThatCannotBePulled(t *testing.T) {
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared")))
	claim(t, o.Dir)
	const known = "pods-000000"
	plan := &engine.Plan{Family: "pods", Variant: "image-pull", Step: 0, Says: "No new pod can pull its image, and later all can"}
	campaign, _, err := (&prove.Campaign{Plans: map[string]*engine.Plan{known: plan}}).Replay(t.Context(), o, known)
	if err != nil {
		t.Fatal(err)
	}
	found := campaign.Report.Findings
	if len(found) != 1 || found[0].Verdict != "status" || found[0].Flaky || !strings.HasPrefix(found[0].Want, "not Ready, because ") || found[0].Object != "Beacon default/cape" {
		t.Errorf("found %+v", found)
	}
}

// claim makes the operator write Ready with the rest of the status.
func claim(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "cmd", "main.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const before = `	_ = unstructured.SetNestedField(one.Object, one.GetGeneration(), "status", "observedGeneration")`
	const ready = `
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Lit", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}
	_ = unstructured.SetNestedSlice(one.Object, []any{condition}, "status", "conditions")`
	if strings.Count(string(text), before) != 1 {
		t.Fatalf("%q is not in %s", before, path)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), before, before+ready, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}
