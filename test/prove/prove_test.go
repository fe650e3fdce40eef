// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

// defects is how many of the defects are tried: each takes half a minute. OPDOCK_TEST_DEFECTS=all tries all of them.
var defects = 5

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	if os.Getenv("OPDOCK_TEST_DEFECTS") == "all" {
		defects = 15
	}
	os.Exit(testenv.Main(m))
}

// frigate copies the project.
func frigate(t *testing.T) prove.Options {
	t.Helper()
	return options(t, testenv.Project(t, filepath.Join("..", ".."), "frigate", filepath.Join("testdata", "frigate"), filepath.Join("testdata", "shared")))
}

// options are those of all campaigns.
func options(t *testing.T, dir string) prove.Options {
	t.Helper()
	testenv.ControlPlane(t)
	return prove.Options{
		Dir: dir, StateDir: relative(t, t.TempDir()), Budget: 10 * time.Minute, Env: append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off"),
		ControlPlane: os.Getenv("OPDOCK_CONTROLPLANE"), Say: func(text string) { t.Log(text) },
	}
}

// relative is a path from here, as tests of projects give it.
func relative(t *testing.T, dir string) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(here, dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCampaigns has one campaign for each defect, with the family that must find it, and one without any. The operator is built
// once. Without a defect, it reads only the in-cluster configuration, which each of its starts must have.
func TestCampaigns(t *testing.T) {
	o := frigate(t)
	for _, test := range []struct {
		defect, family string
		// want are verdicts, one of which is to be found.
		want []string
	}{
		{"", "unobserved,order,input", nil},
		{"forgets-first", "crash", []string{"leftovers"}},
		{"ignores-captain", "input", []string{"update"}},
		{"gives-up", "lost", []string{"end-state", "status", "leftovers", "deletion"}},
		{"no-owner", "", []string{"leftovers"}},
		{"random-name", "lost", []string{"end-state", "counts"}},
		{"restless", "", []string{"loop"}},
		{"create-only", "drift", []string{"end-state"}},
		{"keeps-cargo", "input", []string{"update"}},
		{"fears-creation", "input", []string{"panic"}},
		{"mutinies", "input", []string{"exit"}},
		{"resigns", "refused", []string{"end-state", "status", "leftovers", "deletion"}},
		{"old-status", "stale", []string{"end-state", "counts"}},
		{"knows-names", "unobserved", []string{"end-state"}},
		{"once", "order", []string{"end-state"}},
	}[:defects] {
		name := test.defect
		if name == "" {
			name = "none"
		}
		t.Run(name, func(t *testing.T) {
			o := o
			if o.Families = strings.Split(test.family, ","); test.family == "" {
				o.Families, o.Budget = []string{"slow"}, time.Nanosecond // it shows undisturbed
			}
			o.FailFast = slices.Contains([]string{"ignores-captain", "resigns", "old-status", "knows-names", "once"}, test.defect) // all findings have one cause
			o.Env = append(slices.Clone(o.Env), "DEFECT="+test.defect)
			if test.defect == "" && mounts.Check(mounts.List{}) == nil {
				o.Env = append(o.Env, "CONFIG=in-cluster")
			}
			campaign, err := prove.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			found := []string{}
			for _, f := range campaign.Report.Findings {
				t.Logf("%s: %s (%s): %s; want %s, got %s; flaky %v", f.ID, f.Title, f.Done, f.Object, f.Want, f.Got, f.Flaky)
				if !f.Flaky {
					found = append(found, f.Verdict)
				}
			}
			switch {
			case test.want == nil && len(found) > 0:
				t.Errorf("found %v", found)
			case test.want != nil && !slices.ContainsFunc(found, func(one string) bool { return slices.Contains(test.want, one) }):
				t.Errorf("found %v instead of one of %v", found, test.want)
			}
			for _, one := range campaign.Report.Families {
				t.Logf("%s: %d of %d, %d clean, %d not judged", one.Name, one.Ran, one.Planned, one.Clean, one.Failed)
			}
			for _, one := range campaign.Report.NotTried {
				t.Logf("not tried: %+v", one)
			}
		})
	}
}
