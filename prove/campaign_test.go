// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/report"
)

func known() *Campaign {
	return &Campaign{
		Report: &report.Report{Format: report.Format, Project: "ship", Campaign: "20261116T211500", Took: time.Minute, Findings: []report.Finding{{ID: "crash-1a2b3c", Severity: "high", Story: []report.Line{{At: time.Second, Text: "killed", Fault: true}}}}},
		Plans: map[string]*engine.Plan{
			"crash-1a2b3c": {Family: "crash", Variant: "after", Step: 1, At: &engine.Moment{Verb: "apply", Resource: "deployments", Name: "victory", Nth: 2}, Says: "It is killed"},
			"drift-09c027": {Family: "drift", Variant: "edit", Object: "Deployment default/victory", Path: []string{"spec", "replicas"}, Value: "x"},
		},
		Digest: "0123456789abcdef",
		Setup:  Setup{Scenario: "/ship/prove.yaml", ScenarioDigest: "0123", Main: "./cmd/other", Arguments: []string{"--zk=false"}},
	}
}

func TestCampaignIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "last.json")
	for range 2 { // the second replaces the first
		if err := known().Save(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := known(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		if entry.Name() != "last.json" || info.Mode().Perm() != 0o600 {
			t.Errorf("there is %s, with %s; want last.json, for its owner only", entry.Name(), info.Mode())
		}
	}
}

func TestCampaignThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "last.json")
	if err := known().Save(path); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A directory is where the next version would be written.
	if err := os.MkdirAll(filepath.Join(path+".next", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	changed := known()
	changed.Digest = "other"
	if err := changed.Save(path); err == nil {
		t.Error("that is no success")
	}
	after, err := os.ReadFile(path)
	if err != nil || string(after) != string(before) {
		t.Errorf("what was kept before is damaged: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(filepath.Join(dir, "nothing.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is none", err)
	}
	for name, content := range map[string]string{"empty": "", "cut off": `{"report": {"format"`, "something else": `{"kind": "Pod"}`} {
		path := filepath.Join(dir, "last.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "run opdock prove again") {
			t.Errorf("%s: got %v, want the file and what to do", name, err)
		}
	}
}

// TestReplayOfAnUnknownFinding fails before anything is built or started: there is no project here.
func TestReplayOfAnUnknownFinding(t *testing.T) {
	options := Options{Dir: t.TempDir()}
	_, _, err := known().Replay(t.Context(), options, "lost-000000")
	var unknown *UnknownFindingError
	if !errors.As(err, &unknown) || err.Error() != `the last campaign has no finding "lost-000000"; it has crash-1a2b3c, drift-09c027` {
		t.Errorf("got %v", err)
	}
	_, _, err = (&Campaign{}).Replay(t.Context(), options, "lost-000000")
	if want := `the last campaign has no finding "lost-000000", nor any other that can be replayed`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFamiliesCannotBeChangedByCallers(t *testing.T) {
	Families()[0] = "other"
	if got := Families()[0]; got != engine.Families[0] || got == "other" {
		t.Errorf("the first family is %q now", got)
	}
}
