// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/golden"
)

// panes are what a document shows of a terminal, by their names. They stand between "<!-- pane: NAME -->" and
// "<!-- end -->".
type panes struct {
	path string
	text string
}

var pane = regexp.MustCompile("(?s)(<!-- pane: ([a-z-]+) -->\n).*?(<!-- end -->)")

// check compares a pane with what was seen. With -update it is replaced.
func (p *panes) check(t *testing.T, name, seen string) {
	t.Helper()
	found := false
	p.text = pane.ReplaceAllStringFunc(p.text, func(old string) string {
		parts := pane.FindStringSubmatch(old)
		if parts[2] != name {
			return old
		}
		found = true
		current := parts[1] + "```text\n" + strings.TrimSpace(seen) + "\n```\n" + parts[3]
		if !*golden.Update && withoutVariation(old) != withoutVariation(current) {
			t.Errorf("%s shows something else (run the test with -update):\n%s\nand there is\n%s", p.path, old, current)
		}
		return current
	})
	if !found {
		t.Errorf("%s has no pane %s", p.path, name)
	}
}

// variation is what differs from run to run: durations, and what a pod says at the moment.
var variation = regexp.MustCompile(`\([0-9.ms]+\)|is not available: .*`)

func withoutVariation(text string) string { return variation.ReplaceAllString(text, "*") }

// TestTheDocumentShowsWhatIsShown runs what docs/project.md is about.
func TestTheDocumentShowsWhatIsShown(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "project.md")
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document := &panes{path: path, text: string(content)}
	run, dir := projectOnRealCluster(t, "single")
	show := func(name string, args ...string) {
		t.Helper()
		_, user := run(args...)
		progress, notes, _ := strings.Cut(user.ErrText.String(), "note: ")
		if notes != "" {
			notes = "note: " + notes // they are the last to be written, below the table
		}
		document.check(t, name, "$ opdock "+strings.Join(args, " ")+"\n"+progress+user.OutText.String()+notes)
	}
	show("install", "install")
	show("deploy", "deploy", "--image", "team/harbour:v1")
	show("dry-run", "deploy", "--image", "team/harbour:v2", "--dry-run")

	sample := readSample(t, filepath.Join(dir, "config/samples/sea_v1_ship.yaml"))
	sample.SetNamespace("default")
	if err := fleettest.Client(t).Create(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	show("left", "undeploy")

	name := "config/crd/bases/sea.example.com_ships.yaml"
	definition, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, name, strings.Replace(string(definition), "minimum: 1", "minimum: 1\n                  default: many", 1))
	show("refused", "install")

	run, dir = projectOnRealCluster(t, "sdk")
	breakPods(t, dir)
	namespace := clustertest.Namespace(t)
	_, user := run("deploy", "--timeout", "8s", "--namespace", namespace)
	document.check(t, "unavailable", "$ opdock deploy --timeout 8s\n"+strings.ReplaceAll(user.ErrText.String(), namespace, "default")+user.OutText.String())
	if *golden.Update {
		if err := os.WriteFile(path, []byte(document.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
