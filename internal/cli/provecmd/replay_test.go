// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

func TestLiveLines(t *testing.T) {
	for want, line := range map[string]prove.Line{
		"       1.500s  step: create":                                      {At: 1500 * time.Millisecond, Text: "step: create"},
		"  !    2.000s  the operator is killed":                            {At: 2 * time.Second, Text: "the operator is killed", Fault: true},
		"      12.345s  create configmaps default/a 201  at cmd/main.go:7": {At: 12345 * time.Millisecond, Text: "create configmaps default/a 201", Where: "cmd/main.go:7"},
		"       0.000s  �[31mred":                                          {Text: "\x1b[31mred"},
	} {
		if got := liveLine(line); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestReplayOfAScenarioThatIsGone must not run the samples instead, whose steps are others.
func TestReplayOfAScenarioThatIsGone(t *testing.T) {
	dir, home := testenv.Dir(t, ship), t.TempDir()
	testenv.WriteFile(t, filepath.Join(dir, "config", "samples", "frigate.yaml"), "apiVersion: sea.example.com/v1\nkind: Frigate\nmetadata: {name: victory}\n")
	scenario := filepath.Join(dir, "prove.yaml")
	known := &prove.Campaign{Report: &report.Report{}, Plans: map[string]*engine.Plan{"crash-1a2b3c": {Family: "crash"}}, Setup: prove.Setup{Scenario: scenario}}
	if err := known.Save(filepath.Join(home, "dev", "ship", "prove", "last.json")); err != nil {
		t.Fatal(err)
	}
	code, text := screen(t, consoleIn(home), dir, "--dir", dir, "--replay", "crash-1a2b3c")
	clitest.ExpectCode(t, code, couldNotRun)
	if want := "the scenario of the campaign, DIR/prove.yaml, is gone\n  say where it is now: --scenario FILE\n"; !strings.Contains(text, want) {
		t.Errorf("got\n%swant %s", text, want)
	}
	// It is read if it is there: this one has a mistake.
	if err := os.WriteFile(scenario, []byte("steps: none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, text = screen(t, consoleIn(home), dir, "--dir", dir, "--replay", "crash-1a2b3c"); !strings.Contains(text, "DIR/prove.yaml:1:1: apiVersion is missing") {
		t.Errorf("got\n%s", text)
	}
}

func TestCommandsOfFindings(t *testing.T) {
	for about, test := range map[string]struct {
		o         proveOptions
		arguments []string
		want      []string
	}{
		"nothing given": {proveOptions{dir: "."}, nil, []string{"opdock prove --replay crash-1", "opdock prove --families upgrade --upgrade-from v1", ""}},
		"all given": {
			proveOptions{dir: "../my ship", scenario: "prove.yaml", main: "./cmd/m"}, []string{"--zk=false", "a b"},
			[]string{"opdock prove --replay crash-1 --dir '../my ship'", "opdock prove --families upgrade --upgrade-from v1 --dir '../my ship' --scenario prove.yaml --main ./cmd/m -- --zk=false 'a b'", ""},
		},
	} {
		r := &report.Report{Findings: []report.Finding{
			{Family: "crash", Replay: "opdock prove --replay crash-1"}, {Family: "upgrade", Replay: "opdock prove --families upgrade --upgrade-from v1"}, {Family: "undisturbed"},
		}}
		repeatable(r, test.o, test.arguments)
		var got []string
		for i := range r.Findings {
			got = append(got, r.Findings[i].Replay)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", about, got, test.want)
		}
	}
}
