// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/opdock/opdock/internal/golden"
)

func text(r *Report, width int) string {
	var out strings.Builder
	Text(&out, r, width)
	return out.String()
}

func TestTextGolden(t *testing.T) {
	one := sample()
	one.Findings = one.Findings[:1]
	nothing := &Report{Project: "ship", Campaign: "20261116T211500", Interrupted: true}
	for name, test := range map[string]struct {
		report *Report
		width  int
	}{
		"findings":        {sample(), 110},
		"findings-narrow": {sample(), 60},
		"one":             {one, 0},
		"clean":           {clean(), 100},
		"interrupted":     {interrupted(), 100},
		"fifty":           {many(), 120},
		"long":            {long(), 100},
		"hostile":         {hostile(), 140},
		"nothing":         {nothing, 80},
		"broken":          {broken(), 100},
	} {
		t.Run(name, func(t *testing.T) { golden.Compare(t, "text-"+name, text(test.report, test.width)) })
	}
}

// No line is wider than the terminal, except commands, which are there to be copied. Nothing acts on the terminal.
func TestTextFits(t *testing.T) {
	for name, r := range map[string]*Report{
		"sample": sample(), "clean": clean(), "interrupted": interrupted(), "fifty": many(), "long": long(), "hostile": hostile(),
	} {
		for _, width := range []int{60, 61, 72, 80, 100, 133, 200} {
			for line := range strings.Lines(text(r, width)) {
				line = strings.TrimSuffix(line, "\n")
				if cells(line) > width && !strings.Contains(line, "replay  ") {
					t.Errorf("%s: %d columns instead of %d: %q", name, cells(line), width, line)
				}
				if strings.HasSuffix(line, " ") {
					t.Errorf("%s: a space at the end of %q", name, line)
				}
				if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
					t.Errorf("%s: control characters in %q", name, line)
				}
			}
		}
	}
}

func TestTextShowsEachFindingOnce(t *testing.T) {
	r := many()
	shown := text(r, 120)
	for i := range r.Findings {
		if n := strings.Count(shown, fmt.Sprintf("Finding %d:", i)); n != 1 {
			t.Errorf("finding %d is there %d times", i, n)
		}
	}
}

func TestWritersLeaveTheReportAlone(t *testing.T) {
	var before, after bytes.Buffer
	r := sample()
	first := r.Findings[0].ID
	for _, write := range []func() error{
		func() error { Text(&before, r, 80); return nil },
		func() error { return JSON(&before, r) },
		func() error { return JUnit(&before, r) },
		func() error { return SARIF(&before, r) },
		func() error { return HTML(&before, r) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if r.Findings[0].ID != first {
		t.Error("the findings were sorted in place")
	}
	Text(&after, r, 80)
	if !bytes.HasPrefix(before.Bytes(), after.Bytes()) {
		t.Error("the same report looks different the second time")
	}
}

func TestMiddle(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"0123456789", 5, "01…89"},
		{"0123456789", 6, "012…89"},
		{"0123456789", 1, "…"},
		{"漢字漢字漢字", 6, "漢…字"},
	} {
		if got := middle(test.text, test.limit); got != test.want {
			t.Errorf("middle(%q, %d) = %q, want %q", test.text, test.limit, got, test.want)
		}
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü 漢":   "plain ü 漢",
		"\x1b[31m":    `\u001b[31m`,
		"a\nb\tc\r":   `a\nb\tc\r`,
		"\u202eright": `\u202eright`,
		"\xff":        `\xff`,
		"\U000e0001":  `\U000e0001`,
		"\x00":        `\u0000`,
	} {
		if got := visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestStoryKeepsTheFaultAndTheEnd(t *testing.T) {
	lines := make([]Line, 100)
	lines[40].Fault, lines[60].Wrong = true, true
	shown := around(lines, 10)
	count := 0
	for _, one := range shown {
		if one {
			count++
		}
	}
	if !shown[40] || !shown[39] || !shown[41] || !shown[60] || !shown[99] || count != 10 {
		t.Errorf("%d lines are shown: %v", count, shown)
	}
}

func TestClaimsThatAreKeptAreMentioned(t *testing.T) {
	r := &Report{Reference: Reference{Runs: 2, Writes: 1, Objects: 1, Kept: 2}}
	if got, want := r.undisturbed(), " After the deletion, Kubernetes keeps 2 claims of StatefulSets by design, and their volumes."; !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
	r.Reference.Kept = 0
	if got := r.undisturbed(); strings.Contains(got, "claim") {
		t.Errorf("got %q", got)
	}
}

func TestWhatDoesNotHappenUndisturbedIsMentioned(t *testing.T) {
	const nothing = "The operator writes nothing"
	for about, test := range map[string]struct {
		ref  Reference
		want string
		not  string
	}{
		"no writes":     {Reference{Runs: 2}, nothing, "not everything gets ready"},
		"some":          {Reference{Runs: 2, Writes: 1}, "1 write", nothing},
		"not yet ready": {Reference{Runs: 2, Writes: 1, Unfinished: []string{"Frigate default/victory: status.phase is Pending"}}, "not everything gets ready: Frigate default/victory: status.phase is Pending.", nothing},
	} {
		if got := (&Report{Reference: test.ref}).undisturbed(); !strings.Contains(got, test.want) || strings.Contains(got, test.not) {
			t.Errorf("%s: got %q", about, got)
		}
	}
}
