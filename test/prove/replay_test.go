// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/prove"
)

// TestReplay finds a defect, whose line is named, and shows it again: with the code of the campaign, and after it was mended.
func TestReplay(t *testing.T) {
	o := frigate(t)
	o.Families = []string{"crash"}
	o.Env = append(slices.Clone(o.Env), "DEFECT=forgets-first")
	campaign, err := prove.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(campaign.Report.Findings, func(f prove.Finding) bool { return f.Verdict == "leftovers" && !f.Flaky })
	if at < 0 {
		t.Fatalf("found %+v", campaign.Report.Findings)
	}
	found := campaign.Report.Findings[at]
	// The finalizer goes first, and the berth is never freed.
	want := lineOf(t, o.Dir, "client.IgnoreNotFound(r.Update(ctx, frigate))")
	if len(found.Where) == 0 || !strings.HasPrefix(found.Where[0], want+" update frigates") {
		t.Errorf("it is said to be at %q, and not at %s", found.Where, want)
	}
	told := false
	for _, line := range found.Story {
		told = told || line.Where == want
	}
	if !told {
		t.Errorf("the story has no line at %s: %+v", want, found.Story)
	}

	again, same, err := campaign.Replay(t.Context(), o, found.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !same || len(again.Report.Findings) == 0 || again.Report.Findings[0].ID != found.ID {
		t.Errorf("the same code: %v; found %+v", same, again.Report.Findings)
	}

	path := filepath.Join(o.Dir, "cmd", "main.go")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "free, forget = forget, free", "_ = free", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	again, same, err = campaign.Replay(t.Context(), o, found.ID)
	if err != nil {
		t.Fatal(err)
	}
	if same || len(again.Report.Findings) > 0 {
		t.Errorf("the same code, although it was changed: %v; found %+v", same, again.Report.Findings)
	}
}

// lineOf finds a part of the operator's code.
func lineOf(t *testing.T, dir, part string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "cmd", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), part)
	if !found {
		t.Fatalf("%q is nowhere", part)
	}
	return fmt.Sprintf("cmd/main.go:%d", strings.Count(before, "\n")+1)
}
