// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/prove"
)

// TestReplay runs one disturbance that shows a defect, whose line is named; shows it again; and once more after it was mended.
func TestReplay(t *testing.T) {
	t.Parallel()
	o := brief(t, frigate(t))
	o.Env = append(slices.Clone(o.Env), "DEFECT=forgets-first")
	o.Learned = filepath.Join(t.TempDir(), "recordings", "prove.jsonl")
	const known = "crash-000000"
	forgetting := &engine.Moment{Verb: "update", Group: "navy.example.com", Resource: "frigates", Namespace: "default", Name: "constitution", Nth: 1}
	plan := &engine.Plan{Family: "crash", Variant: "before", Step: 1, At: forgetting, Says: "The operator is killed"}
	campaign, same, err := (&prove.Campaign{Plans: map[string]*engine.Plan{known: plan}, Digest: "of another build"}).Replay(t.Context(), o, known)
	if err != nil {
		t.Fatal(err)
	}
	if same {
		t.Error("it is said to be another build")
	}
	checkLearned(t, o.Learned)
	at := slices.IndexFunc(campaign.Report.Findings, func(f prove.Finding) bool { return f.Verdict == "leftovers" && !f.Flaky })
	if at < 0 {
		t.Fatalf("found %+v", campaign.Report)
	}
	found := campaign.Report.Findings[at]
	// The finalizer goes first, and the berth is never freed.
	want := lineOf(t, o.Dir, "client.IgnoreNotFound(r.Update(ctx, frigate))")
	if len(found.Where) == 0 || !strings.HasPrefix(found.Where[0], want+" update frigates") {
		t.Errorf("it is said to be at %q, and not at %s", found.Where, want)
	}
	if !slices.ContainsFunc(found.Story, func(line prove.Line) bool { return line.Where == want }) {
		t.Errorf("the story has no line at %s: %+v", want, found.Story)
	}

	o.Learned, o.Replayed = "", filepath.Join(t.TempDir(), "replay.jsonl")
	var live []string
	o.Live = func(line prove.Line) {
		if live = append(live, line.Text); line.Fault {
			live[len(live)-1] = "! " + line.Text
		}
	}
	again, same, err := campaign.Replay(t.Context(), o, found.ID)
	if err != nil {
		t.Fatal(err)
	}
	checkReplayed(t, o.Replayed, live)
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
	expectClean(t, again, "crash")
}

// checkLearned wants all rights of the operator in the recording, and nothing that the campaign has done to it.
func checkLearned(t *testing.T, path string) {
	t.Helper()
	collected, err := rights.CollectFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if collected.Header.Project != "frigate" || collected.Header.Identity == "" || collected.Cut {
		t.Errorf("the recording is %+v, cut: %v", collected.Header, collected.Cut)
	}
	verbs := map[string]bool{}
	eachEvent(t, path, func(e *lens.Event) {
		if e.Request == nil {
			return
		}
		if e.Request.Fault != "" || e.Request.Status == http.StatusForbidden {
			t.Errorf("what the campaign did is in the recording: %+v", e.Request)
		}
		verbs[e.Request.Verb+" "+e.Request.Resource.Resource] = true
	})
	for _, want := range []string{"create configmaps", "delete configmaps", "update frigates", "patch frigates"} {
		if !verbs[want] {
			t.Errorf("the recording has no %s: %v", want, verbs)
		}
	}
}

// checkReplayed wants the crash in the recording of the run, and in what was told while it happened.
func checkReplayed(t *testing.T, path string, live []string) {
	t.Helper()
	starts, faults := 0, 0
	eachEvent(t, path, func(e *lens.Event) {
		if e.Process != nil && e.Process.Started {
			starts++
		}
		if e.Request != nil && e.Request.Fault != "" {
			faults++
		}
	})
	if starts != 2 || faults == 0 {
		t.Errorf("the recording has %d starts and %d faults", starts, faults)
	}
	text := strings.Join(live, "\n")
	step, killed := strings.Index(text, "step: delete the samples"), strings.Index(text, "! the operator is killed")
	if step < 0 || killed < step {
		t.Errorf("while it happened, this was told:\n%s", text)
	}
	t.Log("\n" + text)
}

func eachEvent(t *testing.T, path string, see func(*lens.Event)) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := lens.ReadRecording(file, func(e *lens.Event) error { see(e); return nil }); err != nil {
		t.Fatal(err)
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
