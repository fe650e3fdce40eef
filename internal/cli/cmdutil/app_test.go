// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil_test

import (
	"errors"
	"testing"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
	"github.com/opdock/opdock/internal/hint"
)

func TestShellQuote(t *testing.T) {
	for word, want := range map[string]string{
		"/home/a/.local/state": "/home/a/.local/state",
		"":                     "''",
		"two words":            "'two words'",
		"it's":                 `'it'\''s'`,
		"$HOME":                "'$HOME'",
	} {
		if got := cmdutil.ShellQuote(word); got != want {
			t.Errorf("shellQuote(%q) = %s, want %s", word, got, want)
		}
	}
}

func TestCommandNamesTheClusterOnlyWhenNeeded(t *testing.T) {
	app := clitest.NewConsole(nil).App
	if got, want := app.Command("down", "dock"), "opdock down"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	app.Env = []string{"OPDOCK_CLUSTER=first", "OPDOCK_CLUSTER=other"}
	app.Program = "bin/opdock"
	if got, want := app.Command("down", "other"), "bin/opdock down"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := app.Command("down", "dock", "--delete"), "bin/opdock down --name dock --delete"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReport(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"nothing":     {nil, 0, ""},
		"plain":       {errors.New("it rained"), 1, "opdock: it rained\n"},
		"hints":       {hint.With(errors.New("it rained"), "take an umbrella"), 1, "opdock: it rained\n  take an umbrella\n"},
		"usage":       {&cmdutil.UsageError{Message: "no such flag"}, 2, "opdock: no such flag\n"},
		"said before": {&cmdutil.SaidError{Reason: "not alive"}, 1, ""},
		"bad name":    {&cluster.NameError{Name: "A B"}, 2, "opdock: " + (&cluster.NameError{Name: "A B"}).Error() + "\n"},
		"several": {
			errors.Join(hint.With(errors.New("it rained"), "take an umbrella"), errors.New("it was cold")), 1,
			"opdock: it rained\n  take an umbrella\nopdock: it was cold\n",
		},
		"start error": {
			&cluster.StartError{Reason: cluster.ReasonPortTaken, Message: "port 80 is taken", Hint: "take another"}, 1,
			"opdock: port 80 is taken\n  take another\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewConsole(nil)
			clitest.ExpectCode(t, s.Report(test.err), test.code)
			if got := s.ErrText.String(); got != test.stderr {
				t.Errorf("got %q, want %q", got, test.stderr)
			}
		})
	}
}
