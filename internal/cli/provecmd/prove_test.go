// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/testenv"
	"github.com/opdock/opdock/prove"
)

// ship is a project with a main package that is never built here.
var ship = map[string]string{
	"go.mod":      "module example.com/ship\n\ngo 1.25\n",
	"cmd/main.go": "package main\n\nfunc main() {}\n",
	"config/crd/bases/frigates.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: frigates.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: Frigate, plural: frigates}
  versions: [{name: v1, served: true, storage: true}]
`,
}

// consoleIn is a user whose state is in a directory, and whose control plane cannot run.
func consoleIn(home string) *clitest.Console {
	s := newConsole(nil)
	s.Dock.Home = func() string { return home }
	s.Dock.FindBinary = func() (string, error) { return filepath.Join(home, "no-control-plane"), nil }
	return s
}

// screen runs the verb, and hides where the files are.
func screen(t *testing.T, s *clitest.Console, dir string, args ...string) (code int, text string) {
	t.Helper()
	code, text = s.Screen(t.Context(), append([]string{"prove"}, args...)...)
	return code, strings.ReplaceAll(text, dir, "DIR")
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"argument":            {"frigate"},
		"argument-and-dash":   {"frigate", "--", "--leader-elect"},
		"family":              {"--families", "crash,earthquake"},
		"format":              {"-o", "pdf"},
		"report":              {"--report", "prove.pdf"},
		"budget":              {"--budget", "0s"},
		"budget-of-no-unit":   {"--budget", "10"},
		"empty-release":       {"--upgrade-from", ""},
		"empty-image":         {"--upgrade-from", "v1.0.0", "--upgrade-image", ""},
		"empty-replay":        {"--replay", ""},
		"empty-families":      {"--families", ""},
		"parallel":            {"--parallel", "0"},
		"page-of-nothing":     {"--page"},
		"page-for-others":     {"--page", "--replay", "crash-1a2b3c", "--page-address", "0.0.0.0:8700"},
		"page-as-json":        {"--page", "--replay", "crash-1a2b3c", "-o", "json"},
		"write-and-replay":    {"--write-scenario", "a.yaml", "--replay", "crash-1a2b3c"},
		"replay-and-families": {"--replay", "crash-1a2b3c", "--families", "crash"},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := screen(t, newConsole(nil), t.TempDir(), args...)
			clitest.ExpectCode(t, code, cmdutil.ExitUsage)
			golden.Compare(t, "usage/"+name, text)
		})
	}
}

func TestOperatorsThatCannotBeTried(t *testing.T) {
	dir, empty := testenv.Dir(t, ship), t.TempDir()
	broken := filepath.Join(dir, "scenario.yaml")
	if err := os.WriteFile(broken, []byte("apiVersion: opdock.dev/v1alpha1\nkind: Scenario\nsteps:\n- name: create\n  aply: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no-project":      {"--dir", empty},
		"no-samples":      {"--dir", dir},
		"no-such-main":    {"--dir", dir, "--main", "./cmd/other"},
		"broken-scenario": {"--dir", dir, "--scenario", broken},
		"no-scenario":     {"--dir", dir, "--scenario", filepath.Join(dir, "nothing.yaml")},
		"no-campaign":     {"--dir", dir, "--replay", "crash-1a2b3c"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			code, text := screen(t, consoleIn(home), dir, args...)
			clitest.ExpectCode(t, code, couldNotRun)
			golden.Compare(t, "bad/"+name, strings.ReplaceAll(strings.ReplaceAll(text, empty, "EMPTY"), home, "HOME"))
		})
	}
}

// TestUnknownFinding asks for a finding that the last campaign does not have, before anything is built.
func TestUnknownFinding(t *testing.T) {
	dir, home := testenv.Dir(t, ship), t.TempDir()
	known := &prove.Campaign{Report: &report.Report{}, Plans: map[string]*engine.Plan{"drift-09c027": {Family: "drift"}, "crash-5d1e00": {Family: "crash"}}}
	if err := known.Save(filepath.Join(home, "dev", "ship", "prove", "last.json")); err != nil {
		t.Fatal(err)
	}
	code, text := screen(t, consoleIn(home), dir, "--dir", dir, "--replay", "crash-1a2b3c")
	clitest.ExpectCode(t, code, couldNotRun)
	for _, want := range []string{`no finding "crash-1a2b3c"`, "it has crash-5d1e00, drift-09c027"} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%swant %s", text, want)
		}
	}
}

// TestFindingsWithoutADisturbance asks for findings of an upgrade, which no replay of a single run shows.
func TestFindingsWithoutADisturbance(t *testing.T) {
	dir, home := testenv.Dir(t, ship), t.TempDir()
	upgraded := &prove.Campaign{Report: &report.Report{Findings: []report.Finding{{ID: "upgrade-43bad7", Replay: "opdock prove --families upgrade --upgrade-from v1.0.0"}}}}
	if err := upgraded.Save(filepath.Join(home, "dev", "ship", "prove", "last.json")); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{
		"upgrade-43bad7": "cannot be replayed alone\n  run: opdock prove --families upgrade --upgrade-from v1.0.0\n",
		"crash-1a2b3c":   "nor any other that can be replayed\n  run a campaign first: opdock prove\n",
	} {
		code, text := screen(t, consoleIn(home), dir, "--dir", dir, "--replay", id)
		clitest.ExpectCode(t, code, couldNotRun)
		if !strings.Contains(text, want) {
			t.Errorf("got\n%swant %s", text, want)
		}
	}
}

// TestInterruptedBeforeTheFirstRun has another exit code than a campaign with findings.
func TestInterruptedBeforeTheFirstRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := testenv.Dir(t, ship)
	testenv.WriteFile(t, filepath.Join(dir, "config", "samples", "frigate.yaml"), "apiVersion: sea.example.com/v1\nkind: Frigate\nmetadata: {name: victory}\n")
	code, text := consoleIn(t.TempDir()).Screen(ctx, "prove", "--dir", dir)
	clitest.ExpectCode(t, code, couldNotRun)
	if !strings.Contains(text, "interrupted before the first disturbed run") || strings.Contains(text, "no file was changed") {
		t.Errorf("got\n%s", text)
	}
}

// TestCampaignsOfNamesakes keeps the campaigns of two projects with one name apart.
func TestCampaignsOfNamesakes(t *testing.T) {
	first, second, home := testenv.Dir(t, ship), testenv.Dir(t, ship), t.TempDir()
	samples := "apiVersion: sea.example.com/v1\nkind: Frigate\nmetadata: {name: victory}\n"
	testenv.WriteFile(t, filepath.Join(first, "config", "samples", "frigate.yaml"), samples)
	code, text := screen(t, consoleIn(home), first, "--dir", first) // there is no control plane to run it
	clitest.ExpectCode(t, code, couldNotRun)
	if !strings.Contains(text, "Proving ship") {
		t.Fatalf("got\n%s", text)
	}
	known := &prove.Campaign{Report: &report.Report{}, Plans: map[string]*engine.Plan{"crash-5d1e00": {Family: "crash"}}}
	if err := known.Save(filepath.Join(home, "dev", "ship", "prove", "last.json")); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{first: "it has crash-5d1e00", second: "there is no campaign of this project"} {
		if _, text := screen(t, consoleIn(home), dir, "--dir", dir, "--replay", "crash-1a2b3c"); !strings.Contains(text, want) {
			t.Errorf("got\n%swant %s", text, want)
		}
	}
}

func TestReportsAreWritten(t *testing.T) {
	dir := t.TempDir()
	s := newConsole(nil)
	a := verbs{s.App}
	r := &report.Report{Format: report.Format, Project: "ship", Campaign: "20261116T211500", Began: clitest.Noon, Took: time.Minute, Families: []report.Family{{Name: "crash", Planned: 1, Ran: 1, Clean: 1}}}
	var o proveOptions
	for name, begins := range map[string]string{"a.json": "{", "a.xml": "<?xml", "a.sarif": "{", "a.html": "<!DOCTYPE html>", "a.txt": " opdock prove"} {
		o.reports, o.format = []string{filepath.Join(dir, name)}, formatText
		if err := a.show(o, r); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(o.reports[0])
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(strings.ToLower(string(content)), strings.ToLower(begins)) {
			t.Errorf("%s begins with %.40q, want %q", name, content, begins)
		}
		if info, err := os.Stat(o.reports[0]); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s can be read by others: %v, %v", name, info.Mode(), err)
		}
	}
	o.reports = []string{filepath.Join(dir, "new", "a.json")}
	if err := a.show(o, r); err != nil {
		t.Errorf("a report in a new directory: %v", err)
	}
}

func TestReportIsPrintedThoughItCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	testenv.WriteFile(t, filepath.Join(dir, "file"), "not a directory")
	s := newConsole(nil)
	good := filepath.Join(dir, "good.json")
	o := proveOptions{format: formatText, reports: []string{filepath.Join(dir, "file", "a.json"), good}}
	r := &report.Report{Format: report.Format, Project: "ship", Campaign: "20261116T211500", Began: clitest.Noon, Took: time.Minute}
	err := verbs{s.App}.show(o, r)
	if err == nil || !strings.Contains(err.Error(), o.reports[0]) {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if !strings.Contains(s.OutText.String(), "opdock prove") {
		t.Errorf("the report is not printed, only\n%s", s.OutText.String())
	}
	if _, err := os.Stat(good); err != nil {
		t.Errorf("the other report is not written: %v", err)
	}
}

// full is a file on a disk that is full.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestReportThatCannotBePrinted(t *testing.T) {
	for _, format := range formats {
		s := newConsole(nil)
		s.Out = full{}
		if err := (verbs{s.App}).show(proveOptions{format: format}, &report.Report{Format: report.Format, Project: "ship"}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: got %v", format, err)
		}
	}
}

func TestWhatToDoAboutWebhooksThatAreNotServed(t *testing.T) {
	a := verbs{&cmdutil.App{Program: "opdock"}}
	err := a.explain(fmt.Errorf("starting: %w", &dev.NotServedError{Err: errors.New("waiting for webhooks on port 9443: refused"), Tail: []string{"waiting for certs"}}))
	var told *hint.Error
	if !errors.As(err, &told) || len(told.Hints) != 2 || !strings.Contains(told.Hints[1], "opdock prove -- --config FILE") {
		t.Errorf("the error is %#v", err)
	}
}

func TestWhatToDoAboutAnOperatorThatEnds(t *testing.T) {
	a := verbs{&cmdutil.App{Program: "opdock"}}
	err := a.explain(&dev.EndedError{How: "exited with status 1", Tail: []string{"starting", "ERROR unable to load in-cluster configuration", "ERROR unable to load in-cluster configuration"}})
	var told *hint.Error
	if !errors.As(err, &told) || len(told.Hints) != 1 || !strings.Contains(told.Hints[0], "KUBECONFIG") {
		t.Errorf("the error is %#v", err)
	}
	unknown := &dev.EndedError{How: "exited with status 1", Tail: []string{"bye"}}
	if err := a.explain(unknown); err != unknown { //nolint:errorlint // the very same
		t.Errorf("the error is %#v", err)
	}
}
