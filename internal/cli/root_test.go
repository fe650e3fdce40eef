// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/golden"
)

func TestHelp(t *testing.T) {
	for _, verb := range append([]*cobra.Command{withVerbs(newConsole(nil).App)}, withVerbs(clitest.NewConsole(nil).App).Commands()...) {
		t.Run(verb.Name(), func(t *testing.T) {
			var args []string
			if verb.HasParent() {
				args = append(args, verb.Name())
			}
			code, screen := newConsole(nil).Screen(t.Context(), append(args, "--help")...)
			clitest.ExpectCode(t, code, cmdutil.ExitOK)
			golden.Compare(t, "help/"+verb.Name(), screen)

			switch {
			case verb.Short == "" || strings.Contains(verb.Short, "\n"):
				t.Error("the summary is not one line")
			case len(verb.Long) <= len(verb.Short) && verb.Name() != "help":
				t.Error("there is no paragraph")
			case !strings.Contains(screen, "\nExamples:\n  "):
				t.Error("there are no examples")
			}
			for line := range strings.Lines(screen) {
				if len(line) > 121 {
					t.Errorf("line of %d characters: %s", len(line), line)
				}
			}
		})
	}
}

func TestHelpVerbIsTheSameAsTheFlag(t *testing.T) {
	for _, verb := range []string{"up", "kubectl", "create api", "delete webhook"} {
		byFlag, byVerb := newConsole(nil), newConsole(nil)
		words := strings.Fields(verb)
		byFlag.Screen(t.Context(), append(words, "--help")...)
		byVerb.Screen(t.Context(), append([]string{"help"}, words...)...)
		if byFlag.OutText.String() != byVerb.OutText.String() || byVerb.OutText.Len() == 0 {
			t.Errorf("%s: help and --help differ", verb)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"unknown-verb":            {"upp"},
		"unknown-verb-help":       {"help", "nonsense"},
		"elsewhere-new":           {"new", "first-operator", "--repo=example.com/first-operator"},
		"elsewhere-add":           {"add", "api", "--api-version=app.example.com/v1alpha1", "--kind=AppService"},
		"elsewhere-generate":      {"generate", "k8s"},
		"elsewhere-up":            {"up", "local"},
		"elsewhere-run":           {"run", "--local"},
		"elsewhere-build":         {"build", "me/first-operator:v1"},
		"help-two-verbs":          {"help", "up", "down"},
		"help-unknown-of-group":   {"help", "create", "apis"},
		"up-many-nodes":           {"up", "--nodes", "1000000"},
		"unknown-flag":            {"up", "--nonsense"},
		"up-stray-argument":       {"up", "other"},
		"up-no-nodes":             {"up", "--nodes", "0"},
		"up-nodes-not-a-number":   {"up", "--nodes", "many"},
		"up-port":                 {"up", "--port", "70000"},
		"up-timeout-no-time":      {"up", "--timeout", "soon"},
		"up-quiet-not-bool":       {"up", "--quiet=maybe"},
		"up-timeout":              {"up", "--timeout", "0s"},
		"up-ephemeral-durable":    {"up", "--ephemeral", "--durable"},
		"up-verbose-background":   {"up", "--verbose"},
		"up-verbose-quiet":        {"up", "--foreground", "--verbose", "--quiet"},
		"down-all-and-name":       {"down", "--all", "--name", "other"},
		"status-format":           {"status", "-o", "yaml"},
		"status-stray-argument":   {"status", "other"},
		"version-stray-argument":  {"version", "other"},
		"kubeconfig-only-group":   {"kubeconfig", "--as-group", "developers"},
		"kubeconfig-nobody":       {"kubeconfig", "--as", ""},
		"kubectl-name-missing":    {"kubectl", "--name"},
		"completion-no-shell":     {"completion"},
		"completion-other-shell":  {"completion", "tcsh"},
		"assets-stray-argument":   {"assets", "other"},
		"build-controlplane-bare": {"build-controlplane"},
		"run-namespace":           {"run", "--namespace", "Not_A_Name"},
		"run-timeout":             {"run", "--until-ready", "--timeout", "-1s"},
		"run-no-nodes":            {"run", "--nodes", "0"},
		"run-keep-foreign":        {"run", "--kubeconfig", "/kubeconfig", "--keep"},
		"run-unknown-sample":      {"run", "--samples", "appservice,nonsense"},
		"run-stray-argument":      {"run", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConsole(nil)
			code, screen := s.Screen(t.Context(), args...)
			clitest.ExpectCode(t, code, cmdutil.ExitUsage)
			golden.Compare(t, "usage/"+name, screen)
			if s.OutText.Len() > 0 {
				t.Error("an error belongs on standard error only")
			}
			if lines := strings.Split(strings.TrimSpace(s.ErrText.String()), "\n"); len(lines) < 2 {
				t.Error("there is no hint")
			}
		})
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range shells {
		s := newConsole(nil)
		code, _ := s.Screen(t.Context(), "completion", shell)
		clitest.ExpectCode(t, code, cmdutil.ExitOK)
		if !strings.Contains(s.OutText.String(), "__complete") {
			t.Errorf("%s: that is no completion script", shell)
		}
	}
}

func TestNamesAndFormatsAreCompleted(t *testing.T) {
	for args, want := range map[string]string{
		"down --name ":    "dock\nlost\n",
		"status --name l": "dock\nlost\n",
		"status -o ":      "text\njson\n",
	} {
		s := newConsole(&clitest.FakeDock{Clusters: clitest.Clusters(clitest.Alive, clitest.Dead)})
		s.Screen(t.Context(), append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if got := s.OutText.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %q, want %q first", args, got, want)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	code, screen := newConsole(nil).Screen(t.Context(), "--version")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	if !strings.Contains(screen, "\nopdock devel") && !strings.Contains(screen, "\nopdock v") {
		t.Errorf("got\n%s", screen)
	}
}
