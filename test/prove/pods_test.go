// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

// TestImagesThatCannotBePulled is about an operator that calls its custom resource ready as soon as it has created the Deployment.
// Everything is well in the end, so that is the only finding: if no image can be pulled, and if a user names one that does not exist.
func TestImagesThatCannotBePulled(t *testing.T) {
	beacon := filepath.Join("..", "upgrade", "testdata", "beacon")
	o := options(t, testenv.Project(t, filepath.Join("..", ".."), "beacon", beacon, filepath.Join("testdata", "shared")))
	claim(t, o.Dir)
	wrong := values.Change{Path: []string{"spec", "tower"}, Value: "missing.invalid/no-such-image:0", Class: values.Misuse}
	for known, test := range map[string]struct {
		plan *engine.Plan
		want string
	}{
		"pods-000000": {&engine.Plan{Family: "pods", Variant: "image-pull", Step: 0, Says: "No new pod can pull its image, and later all can"}, "not Ready, because "},
		"input-000000": {
			&engine.Plan{Family: "input", Variant: "misuse", Step: 1, Object: "Beacon default/cape", Path: wrong.Path, Value: wrong, Says: "The image does not exist"},
			"the value is refused at admission or reported in the status, because Deployment default/cape: ",
		},
	} {
		t.Run(test.plan.Family, func(t *testing.T) {
			campaign, _, err := (&prove.Campaign{Plans: map[string]*engine.Plan{known: test.plan}}).Replay(t.Context(), o, known)
			if err != nil {
				t.Fatal(err)
			}
			found := campaign.Report.Findings
			if len(found) != 1 || found[0].Verdict != "status" || found[0].Flaky || !strings.HasPrefix(found[0].Want, test.want) || found[0].Object != "Beacon default/cape" {
				t.Errorf("found %+v", found)
			}
		})
	}
}

// claim makes the operator write Ready with the rest of the status, and use an image that the user names.
func claim(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "cmd", "main.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for before, after := range map[string]string{
		`	_ = unstructured.SetNestedField(one.Object, one.GetGeneration(), "status", "observedGeneration")`: `
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Lit", "message": "", "lastTransitionTime": "2020-01-01T00:00:00Z"}
	_ = unstructured.SetNestedSlice(one.Object, []any{condition}, "status", "conditions")`,
		`		containers[0].Image = "lamp:1"`: `
		if image, found, _ := unstructured.NestedString(one.Object, "spec", "tower"); found {
			containers[0].Image = image
		}`,
	} {
		if strings.Count(changed, before) != 1 {
			t.Fatalf("%q is not in %s", before, path)
		}
		changed = strings.Replace(changed, before, before+after, 1)
	}
	if err := os.WriteFile(path, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}
