// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opdock/opdock/internal/golden"
)

func jsonOf(t *testing.T, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := JSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestJSON(t *testing.T) {
	golden.Compare(t, "report.json", string(jsonOf(t, sample())))
	if empty := string(jsonOf(t, &Report{Campaign: "c", Findings: []Finding{{ID: "a"}}})); strings.Contains(empty, "null") {
		t.Errorf("null instead of an empty list:\n%s", empty)
	}
}

func TestReadReturnsWhatJSONWrote(t *testing.T) {
	for name, r := range map[string]*Report{"sample": sample(), "clean": clean(), "interrupted": interrupted(), "long": long()} {
		want := jsonOf(t, r)
		read, err := Read(bytes.NewReader(want))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(string(want), string(jsonOf(t, read))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func TestReadErrors(t *testing.T) {
	whole := string(jsonOf(t, sample()))
	for name, test := range map[string]struct{ text, want string }{
		"empty":           {" \n", "the report is empty"},
		"no JSON":         {"hello", "does not begin with {"},
		"a list":          {"[]", "does not begin with {"},
		"other JSON":      {`{"kind": "List"}`, `"format" is not a positive number`},
		"format 0":        {`{"format": 0}`, `"format" is not a positive number`},
		"only a format":   {`{"format": 1}`, `no field "campaign"`},
		"newer":           {`{"format": 2, "opdock": "v9", "findings": "elsewhere"}`, "the report has format 2, written by opdock v9; this opdock reads up to format 1: use a newer opdock"},
		"newer, nameless": {`{"format": 3}`, "written by opdock (unknown version)"},
		"wrong kind":      {"{\"format\": 1,\n \"campaign\": 4}", `line 2, column 14: field "campaign" is a JSON number and must be a string`},
		"syntax":          {"{\"format\": 1,\n  oops}", "line 2, column 3"},
		"more after it":   {whole + "{}", "after top-level value"},
		"cut":             {whole[:len(whole)/2], "in the middle: opdock was killed or the disk was full"},
		"cut at the end":  {strings.TrimSuffix(strings.TrimSpace(whole), "}"), "in the middle"},
	} {
		_, err := Read(strings.NewReader(test.text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := Read(brokenReader{}); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("an error of the disk becomes %v", err)
	}
}

// However a report is cut, it is said, and nothing panics.
func TestReadCutAnywhere(t *testing.T) {
	whole := bytes.TrimSpace(jsonOf(t, interrupted()))
	for n := range whole {
		if _, err := Read(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("%d of %d bytes are read as a report", n, len(whole))
		} else if n > 0 && !strings.Contains(err.Error(), "in the middle") {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"format": 1, "campaign": "c"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		Text(&out, r, 80)
		if err := errors.Join(JSON(&out, r), JUnit(&out, r), SARIF(&out, r), HTML(&out, r)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestExitCode(t *testing.T) {
	flaky := sample()
	flaky.Findings = slices.DeleteFunc(flaky.Findings, func(f Finding) bool { return !f.Flaky })
	if len(flaky.Findings) == 0 {
		t.Fatal("the sample has no flaky finding")
	}
	for name, test := range map[string]struct {
		report *Report
		want   int
	}{
		"findings": {sample(), 1}, "clean": {clean(), 0}, "flaky only": {flaky, 0}, "interrupted with a finding": {interrupted(), 1}, "interrupted while clean": {&Report{Interrupted: true, Families: []Family{{Name: "crash", Planned: 9, Ran: 3, Clean: 3}}}, 2}, "nothing": {&Report{}, 2}, "clean until the disk was full": {broken(), 2},
		"undisturbed only": {&Report{Families: []Family{{Name: "undisturbed", Planned: 5, Ran: 5, Clean: 5}, {Name: "crash", Planned: 9}}}, 2},
		"all broke down":   {&Report{Families: []Family{{Name: "undisturbed", Planned: 5, Ran: 5, Clean: 5}, {Name: "crash", Planned: 9, Ran: 9, Failed: 9}}}, 2},
		"one was judged":   {&Report{Families: []Family{{Name: "crash", Planned: 9, Ran: 9, Clean: 1, Failed: 8}}}, 0},
		"restless":         {&Report{Families: []Family{{Name: "undisturbed", Planned: 1, Ran: 1}}, Findings: []Finding{{ID: "undisturbed-1", Severity: "high"}}}, 1},
	} {
		if got := test.report.ExitCode(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestSort(t *testing.T) {
	r := &Report{
		Families: []Family{{Name: "newer"}, {Name: "upgrade"}, {Name: "crash"}, {Name: "undisturbed"}},
		Findings: []Finding{
			{ID: "flaky", Severity: "high", Flaky: true},
			{ID: "unknown", Severity: "?"},
			{ID: "low", Severity: "low"},
			{ID: "few", Severity: "high", Verdict: "status", Runs: []string{"1"}},
			{ID: "b", Severity: "high", Verdict: "status", Runs: []string{"1", "2"}, Family: "drift"},
			{ID: "a", Severity: "high", Verdict: "status", Runs: []string{"1", "2"}, Family: "drift"},
			{ID: "early", Severity: "high", Verdict: "status", Runs: []string{"1", "2"}, Family: "crash"},
			{ID: "medium", Severity: "medium", Verdict: "panic"},
			{ID: "panic", Severity: "high", Verdict: "panic"},
			{ID: "reference", Severity: "low", Family: "undisturbed"},
		},
	}
	r.Sort()
	var ids, names []string
	for _, f := range r.Findings {
		ids = append(ids, f.ID)
	}
	for _, f := range r.Families {
		names = append(names, f.Name)
	}
	if got, want := strings.Join(ids, " "), "reference panic early a b few medium low unknown flaky"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := strings.Join(names, " "), "undisturbed crash upgrade newer"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
