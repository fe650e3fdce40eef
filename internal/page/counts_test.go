// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"testing"

	"github.com/opdock/opdock/why"
)

// Each kind can be asked for, also if one name stands for the controllers of several.
func TestCountsKeepKindsApart(t *testing.T) {
	var c counts
	for _, one := range []struct{ controller, kind string }{
		{"(grouped)", "Rollout"}, {"(grouped)", "Experiment"}, {"(grouped)", "Rollout"}, {"ship", ""}, {"ship", "Ship"}, {"ship", ""}, {"(grouped)", ""},
	} {
		c.add(&why.Record{Controller: one.controller, Object: why.Object{Kind: one.kind}})
	}
	var got []string
	total := uint64(0)
	for _, s := range c.summaries() {
		got = append(got, fmt.Sprintf("%s %s", s.Name, s.Kind))
		total += s.Reconciles
	}
	if got, want := strings.Join(got, ", "), "(grouped) Experiment, (grouped) Rollout, ship Ship"; got != want || total != 7 {
		t.Errorf("got %s with %d records, want %s with 7", got, total, want)
	}
}
