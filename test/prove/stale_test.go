// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/prove"
)

// TestOlderList restarts an operator after frigates were created, with a list of frigates from before that. One that trusts its
// cache deletes the berth of a frigate that it does not see. One that asks the API server does not. The same holds if frigates are
// created again, and are being deleted in the list. OPDOCK_TEST_DEFECTS=all tries all of that.
func TestOlderList(t *testing.T) {
	t.Parallel()
	o := brief(t, frigate(t))
	const known = "stale-000000"
	for _, test := range []struct {
		variant      string
		step         int
		defect, want string
		rare         bool
	}{
		{"older-list", 0, "trusts-cache", "counts ConfigMap kube-public/berth-constitution", false}, {"older-list", 0, "", "", true},
		{"older-deletion", 1, "trusts-cache", "counts ConfigMap kube-public/berth-constitution", true}, {"older-deletion", 1, "", "", true},
	} {
		t.Run(test.variant+" "+cmp.Or(test.defect, "none"), func(t *testing.T) {
			skipRare(t, test.rare)
			plan := &engine.Plan{Family: "stale", Variant: test.variant, Step: test.step, Resource: &lens.Resource{Group: "navy.example.com", Resource: "frigates"}, Says: "The operator is restarted"}
			o := o
			o.Env = append(slices.Clone(o.Env), "DEFECT="+test.defect, "KUBE_FEATURE_WatchListClient=false")
			campaign, _, err := (&prove.Campaign{Plans: map[string]*engine.Plan{known: plan}}).Replay(t.Context(), o, known)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range campaign.Report.Findings {
				got = append(got, f.Verdict+" "+f.Object)
				for _, line := range f.Story {
					t.Logf("%s %s", line.At, line.Text)
				}
			}
			if strings.Join(got, ", ") != test.want || len(campaign.Report.NotTried) > 0 {
				t.Errorf("found %q, want %q; not tried: %+v", got, test.want, campaign.Report.NotTried)
			}
			if test.want == "" {
				expectClean(t, campaign, "stale")
			}
		})
	}
}
