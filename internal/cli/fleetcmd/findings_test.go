// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetcmd

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/tree"
	"github.com/opdock/opdock/why"
)

// A run without a terminal says once what goes wrong.
func TestRunPrintsFindings(t *testing.T) {
	s := newConsole(nil)
	r := testRun(s)
	r.session.Findings = findings.NewTracker()
	show := r.newShow(r.Now())
	defer show.end()
	for range 5 {
		r.session.Findings.Add(&why.Record{
			Controller: "robot", Object: why.Object{Kind: "Robot", Name: "arm"}, Start: r.Now(), Outcome: why.Failed, Error: "no such deployment",
		})
		show.Update(tree.Snapshot{})
	}
	const want = `Robot arm fails: the last 3 reconciles ended with "no such deployment".`
	if got := s.ErrText.String(); strings.Count(got, "Robot arm fails") != 1 || !strings.Contains(got, want) {
		t.Errorf("%q is not said once:\n%s", want, got)
	}
}
