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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(testenv.Main(m))
}

// skipRare skips a case that only `make defects` tries: each takes half a minute.
func skipRare(t *testing.T, rare bool) {
	t.Helper()
	if rare && os.Getenv("OPDOCK_TEST_DEFECTS") != "all" {
		t.Skip("this campaign takes half a minute or more: run make defects, which includes it")
	}
}

// expectClean wants that runs of each family were judged, and nothing was found.
func expectClean(t *testing.T, campaign *prove.Campaign, families ...string) {
	t.Helper()
	if code := campaign.Report.ExitCode(); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	for _, name := range families {
		if !slices.ContainsFunc(campaign.Report.Families, func(one report.Family) bool { return one.Name == name && one.Clean > 0 }) {
			t.Errorf("no run of %s is clean: %+v; not tried: %+v", name, campaign.Report.Families, campaign.Report.NotTried)
		}
	}
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

// brief makes a campaign create and delete the samples, without a change between: each run takes half the time.
func brief(t *testing.T, o prove.Options) prove.Options {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(o.Dir, "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var samples []client.Object
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sample := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, sample); err != nil {
			t.Fatal(err)
		}
		samples = append(samples, sample)
	}
	o.Steps = []prove.Step{prove.Apply("create the samples", samples...), prove.DeleteAll("delete the samples")}
	return o
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
	t.Parallel()
	o := frigate(t)
	for _, test := range []struct {
		defect, family string
		// want are verdicts, one of which is to be found.
		want []string
		// oneCause says that all findings have one cause, so one is enough.
		oneCause, rare bool
		// brief says that creation and deletion show it.
		brief bool
	}{
		{defect: "", family: "unobserved,order,input"},
		{defect: "forgets-first", family: "crash", want: []string{"leftovers"}, brief: true},
		{defect: "ignores-captain", family: "input", want: []string{"update"}, oneCause: true},
		{defect: "gives-up", family: "lost", want: []string{"end-state", "status", "leftovers", "deletion"}, brief: true},
		{defect: "no-owner", family: "", want: []string{"leftovers"}, brief: true},
		{defect: "random-name", family: "lost", want: []string{"end-state", "counts"}, brief: true, rare: true},
		{defect: "restless", family: "", want: []string{"loop"}, brief: true, rare: true},
		{defect: "create-only", family: "drift", want: []string{"end-state"}, rare: true},
		{defect: "keeps-cargo", family: "input", want: []string{"update"}, rare: true},
		{defect: "fears-creation", family: "input", want: []string{"panic"}, rare: true},
		{defect: "mutinies", family: "input", want: []string{"exit"}, rare: true},
		{defect: "resigns", family: "refused", want: []string{"end-state", "status", "leftovers", "deletion"}, oneCause: true, rare: true},
		{defect: "old-status", family: "stale", want: []string{"end-state", "counts"}, oneCause: true, rare: true},
		{defect: "knows-names", family: "unobserved", want: []string{"end-state"}, oneCause: true, rare: true},
		{defect: "shares-berths", family: "order", want: []string{"end-state"}, rare: true},
		{defect: "cuts-names", family: "order", want: []string{"status"}, oneCause: true, brief: true, rare: true},
		{defect: "sails-on", family: "order", want: []string{"counts", "deletion", "end-state", "loop"}, oneCause: true, brief: true, rare: true},
		{defect: "ties-up-again", family: "drift", want: []string{"unsettled"}, oneCause: true, brief: true, rare: true},
		{defect: "once", family: "order", want: []string{"end-state"}, oneCause: true, rare: true},
		{defect: "impatient", family: "slow", want: []string{"end-state", "status", "leftovers", "deletion"}, oneCause: true, rare: true},
	} {
		name := test.defect
		if name == "" {
			name = "none"
		}
		t.Run(name, func(t *testing.T) {
			skipRare(t, test.rare)
			o := o
			if o.Families = strings.Split(test.family, ","); test.family == "" {
				o.Families, o.Budget = []string{"slow"}, time.Nanosecond // it shows undisturbed
			}
			if test.brief {
				o = brief(t, o)
			}
			o.FailFast = test.oneCause
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
			if test.want == nil {
				expectClean(t, campaign, o.Families...)
			} else if !slices.ContainsFunc(found, func(one string) bool { return slices.Contains(test.want, one) }) {
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
