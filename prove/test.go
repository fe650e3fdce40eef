// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/librarylog"
	"github.com/opdock/opdock/internal/prove/report"
)

// Test runs a campaign in a test, which fails with the findings. It returns the campaign. Flaky findings are
// only logged. The log output of controller-runtime and client-go in the test process is discarded.
func Test(t testing.TB, o Options) *Campaign {
	t.Helper()
	librarylog.Discard() // otherwise controller-runtime prints a stack because no logger is set
	if o.Say == nil {
		o.Say = func(text string) { t.Log(text) }
	}
	c, err := Run(t.Context(), o)
	if err != nil {
		t.Fatalf("the operator could not be tried: %v", err)
	}
	var text strings.Builder
	const width = 120
	report.Text(&text, c.Report, width)
	switch {
	case c.Report.Totals().Findings > 0:
		t.Errorf("the operator does not recover from every disturbance:\n%s", text.String())
	case c.Report.ExitCode() != 0:
		t.Errorf("no disturbed run was judged, so nothing is known:\n%s", text.String())
	default:
		t.Log("\n" + text.String())
	}
	return c
}
