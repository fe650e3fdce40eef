// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experimentcmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/experiment"
	"github.com/opdock/opdock/internal/golden"
)

func TestExperimentUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown":            {"experiment", "reconcile"},
		"stray-argument":     {"experiment", "reconciles", "again"},
		"unknown-change":     {"experiment", "reconciles", "--only", "delete-1,delete-9"},
		"no-container":       {"experiment", "reconciles", "--containers", "2,0"},
		"containers-twice":   {"experiment", "reconciles", "--containers", "2,4,2"},
		"containers-no-list": {"experiment", "reconciles", "--containers", "two"},
		"no-run":             {"experiment", "reconciles", "--runs", "0"},
		"ready-before":       {"experiment", "reconciles", "--ready-after", "-1s"},
		"timeout":            {"experiment", "reconciles", "--timeout", "0s"},
		"format":             {"experiment", "reconciles", "-o", "yaml"},
		"from-and-runs":      {"experiment", "reconciles", "--from", "result.json", "--runs", "2"},
		"write-and-format":   {"experiment", "reconciles", "-o", "json", "--write", "page.md"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			code, screen := s.Screen(t.Context(), args...)
			clitest.ExpectCode(t, code, cmdutil.ExitUsage)
			golden.Compare(t, "experiment/"+name, screen)
			if s.OutText.Len() > 0 {
				t.Error("an error belongs on standard error only")
			}
		})
	}
}

func TestExperimentHelp(t *testing.T) {
	code, screen := newConsole(nil).Screen(t.Context(), "experiment", "reconciles", "--help")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	golden.Compare(t, "experiment/help", screen)
}

func TestExperimentNeedsACluster(t *testing.T) {
	dock := &clitest.FakeDock{Binary: "/bin/opdock-controlplane"}
	dock.Start = clitest.FailsWith(&cluster.StartError{Message: "there is no room for etcd", Hint: "make some"})
	code, screen := newConsole(dock).Screen(t.Context(), "experiment", "reconciles")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	golden.Compare(t, "experiment/no-cluster", screen)
	if o := dock.Started[0]; o.Name != "" || o.Detach {
		t.Errorf("the cluster is not private: %+v", o)
	}
}

func TestExperimentOutput(t *testing.T) {
	result := &experiment.Result{Kubernetes: "v1.2.3", Runs: 1, Rows: []experiment.Row{
		{Change: "delete-1", Title: "delete one pod of three", Containers: 2, Naive: make([]experiment.Measured, len(experiment.Watchings))},
	}}
	show := func(o experimentOptions) *clitest.Console {
		s := newConsole(nil)
		if err := (verbs{s.App}).showExperiment(o, result); err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got := show(experimentOptions{format: string(cmdutil.OutputText)}).OutText.String(); !strings.Contains(got, "\ndelete one pod of three, 2 containers: ") {
		t.Errorf("the text is:\n%s", got)
	}
	var read experiment.Result
	if err := json.Unmarshal(show(experimentOptions{format: string(cmdutil.OutputJSON)}).OutText.Bytes(), &read); err != nil || len(read.Rows) != 1 {
		t.Errorf("the JSON has %d rows: %v", len(read.Rows), err)
	}
	page := show(experimentOptions{format: outputMarkdown}).OutText.String()
	if !strings.HasPrefix(page, "# ") || !strings.Contains(page, "| delete one pod of three | 2 |") {
		t.Errorf("the page is:\n%s", page)
	}
	saved := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(saved, show(experimentOptions{format: string(cmdutil.OutputJSON)}).OutText.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again := newConsole(nil)
	if code, screen := again.Screen(t.Context(), "experiment", "reconciles", "--from", saved, "-o", "markdown"); code != cmdutil.ExitOK || again.OutText.String() != page {
		t.Errorf("exit code %d, and the page of what was saved is:\n%s", code, screen)
	}
	path := filepath.Join(t.TempDir(), "docs", "page.md")
	for range 2 { // it replaces what is there
		s := show(experimentOptions{write: path})
		if written, err := os.ReadFile(path); err != nil || string(written) != page {
			t.Errorf("written was: %s, %v", written, err)
		}
		if s.OutText.Len() > 0 || !strings.Contains(s.ErrText.String(), path) {
			t.Errorf("it printed %q and %q", s.OutText, s.ErrText)
		}
	}
}
