// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/scenario"
	"github.com/opdock/opdock/internal/testenv"
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
	"config/samples/frigate.yaml": "apiVersion: sea.example.com/v1\nkind: Frigate\nmetadata: {name: victory}\n",
	"prove.yaml":                  scenarioText,
}

const scenarioText = `apiVersion: opdock.dev/v1alpha1
kind: Scenario
steps:
- name: create
  apply: {apiVersion: sea.example.com/v1, kind: Frigate, metadata: {name: victory}, spec: {guns: 104}}
- name: delete
  delete: {all: true}
`

// TestReplayRunsWhatTheCampaignRan goes as far as a project without a control plane can.
func TestReplayRunsWhatTheCampaignRan(t *testing.T) {
	dir := testenv.Dir(t, ship)
	file := filepath.Join(dir, "prove.yaml")
	replay := func(setup Setup, o Options) (said []string, err error) {
		o.Dir, o.StateDir, o.ControlPlane = dir, t.TempDir(), filepath.Join(dir, "no-control-plane")
		o.Say = func(text string) { said = append(said, text) }
		campaign := &Campaign{Plans: map[string]*engine.Plan{"crash-1a2b3c": {Family: "crash"}}, Setup: setup}
		_, _, err = campaign.Replay(t.Context(), o, "crash-1a2b3c")
		return said, err
	}
	if _, err := replay(Setup{Main: "./cmd/other"}, Options{}); err == nil || !strings.Contains(err.Error(), "./cmd/other") {
		t.Errorf("got %v, want that its main package is not there", err)
	}
	if _, err := replay(Setup{Main: "./cmd/other"}, Options{Main: "./cmd"}); err == nil || strings.Contains(err.Error(), "./cmd/other") {
		t.Errorf("got %v, although another main package is given", err)
	}
	var gone *ScenarioGoneError
	if _, err := replay(Setup{Scenario: filepath.Join(dir, "other.yaml")}, Options{}); !errors.As(err, &gone) || gone.Path != filepath.Join(dir, "other.yaml") {
		t.Errorf("got %v, want that the scenario is gone", err)
	}
	if _, err := replay(Setup{Scenario: filepath.Join(dir, "other.yaml")}, Options{Scenario: file}); err == nil || errors.As(err, &gone) {
		t.Errorf("got %v, although another scenario is given", err)
	}
	read, err := scenarioOf(t.Context(), nil, &Options{Scenario: file}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	setup, err := setupOf(&Options{Scenario: file}, read)
	if err != nil || setup.Scenario != file {
		t.Fatalf("got %+v, %v", setup, err)
	}
	const changed = "The scenario has changed since the campaign: the finding may be gone, or look different."
	for about, test := range map[string]struct {
		text string
		want bool
	}{
		"the same":        {scenarioText, false},
		"a comment":       {"# of a ship of the line\n" + scenarioText, false},
		"another object":  {strings.Replace(scenarioText, "104", "74", 1), true},
		"another verdict": {scenarioText + "ignore:\n- {verdict: status, reason: it is a heartbeat}\n", true},
	} {
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := replay(setup, Options{})
		if err == nil || slices.Contains(said, changed) != test.want {
			t.Errorf("%s: said %q, failed with %v", about, said, err)
		}
	}
}

// TestTextsOfAScenario are the addresses and times that somebody chose.
func TestTextsOfAScenario(t *testing.T) {
	s, err := scenario.Parse("prove.yaml", []byte(`apiVersion: opdock.dev/v1alpha1
kind: Scenario
steps:
- name: create
  apply: {apiVersion: sea.example.com/v1, kind: Frigate, metadata: {name: victory}, spec: {address: 192.0.2.10, ports: [80], sails: [{at: "2030-01-01T00:00:00Z"}]}}
- name: move
  patch: {kind: Frigate, name: victory, merge: {spec: {address: 192.0.2.11, peers: "192.0.2.10:80,192.0.2.12:80"}}}
- name: move on
  patch: {kind: Frigate, name: victory, json: [{op: replace, path: /spec/address, value: "2001:db8::1"}]}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := textsOf(s), []string{"192.0.2.10", "192.0.2.11", "192.0.2.12", "2001:db8::1", "2030-01-01T00:00:00Z"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestArgumentsOfACampaign(t *testing.T) {
	setup := Setup{Arguments: []string{"--zk=false"}}
	for about, test := range map[string]struct{ given, want []string }{
		"none given": {nil, []string{"--zk=false"}}, "others given": {[]string{"--zk=true"}, []string{"--zk=true"}},
	} {
		if o, err := setup.complete(Options{Arguments: test.given}); err != nil || !slices.Equal(o.Arguments, test.want) {
			t.Errorf("%s: got %q, %v, want %q", about, o.Arguments, err, test.want)
		}
	}
}
