// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/hint"
)

// UsageError reports an invalid command line. The command exits with ExitUsage.
type UsageError struct {
	Message string
	Hints   []string
}

func (e *UsageError) Error() string { return e.Message }

// SaidError makes the command exit with ExitError without printing another message.
type SaidError struct{ Reason string }

func (e *SaidError) Error() string { return e.Reason }

// ExitCodeError makes the command exit with the code of a program that it ran, without printing a message.
type ExitCodeError struct{ Code int }

func (e *ExitCodeError) Error() string {
	return fmt.Sprintf("the program exited with status %d", e.Code)
}

// Report prints the error with its hints, if there is one, and returns the exit code.
func (a *App) Report(err error) int {
	if err == nil {
		return ExitOK
	}
	for _, one := range flatten(err) {
		var said *SaidError
		var code *ExitCodeError
		if errors.As(one, &said) || errors.As(one, &code) {
			continue
		}
		message, hints := a.explain(one)
		fmt.Fprintf(a.Err, "opdock: %s\n", message)
		for _, hint := range hints {
			fmt.Fprintf(a.Err, "  %s\n", hint)
		}
	}
	var (
		usage *UsageError
		name  *cluster.NameError
		code  *ExitCodeError
	)
	if errors.As(err, &code) {
		return code.Code
	}
	if errors.As(err, &usage) || errors.As(err, &name) {
		return ExitUsage
	}
	return ExitError
}

// flatten takes joined errors apart, so that each gets its own hints.
func flatten(err error) []error {
	// Only an outermost join is taken apart: one that is wrapped belongs to the sentence around it.
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, one := range joined.Unwrap() {
		all = append(all, flatten(one)...)
	}
	return all
}

// explain returns what happened and what to do next.
func (a *App) explain(err error) (message string, hints []string) {
	var (
		usage      *UsageError
		hinted     *hint.Error
		start      *cluster.StartError
		notRunning *cluster.NotRunningError
	)
	switch {
	case errors.As(err, &usage):
		return usage.Message, usage.Hints
	case errors.As(err, &hinted):
		return err.Error(), hinted.Hints
	case errors.As(err, &notRunning):
		return a.ExplainNotRunning(notRunning.Status)
	case errors.As(err, &start) && start.Hint != "":
		return start.Message, []string{start.Hint}
	}
	return err.Error(), nil
}

// ExplainNotRunning returns the message and hints for a cluster that is not alive.
func (a *App) ExplainNotRunning(s cluster.Status) (message string, hints []string) {
	start := "start it: " + a.Command("up", s.Name)
	instead := a.aliveInstead(s.Name)
	switch s.State {
	case cluster.Incomplete:
		return a.ExplainIncomplete(s)
	case cluster.Dead:
		start = "start it again with all its objects: " + a.Command("up", s.Name)
		if s.Ephemeral {
			start = "start it again, without its objects, because it was ephemeral: " + a.Command("up", s.Name)
		}
		return a.DescribeDeath(s, "is dead"), append([]string{start}, instead...)
	case cluster.Stopped:
		return fmt.Sprintf("cluster %q is stopped", s.Name), append([]string{start}, instead...)
	default:
		hints = append([]string{start}, a.KnownClusters()...)
		return fmt.Sprintf("cluster %q was never started", s.Name), append(hints, instead...)
	}
}

// ExplainIncomplete returns the message and hints for a cluster whose objects were never copied completely.
func (a *App) ExplainIncomplete(s cluster.Status) (message string, hints []string) {
	message = fmt.Sprintf("cluster %q is incomplete: its process ended before its objects were copied from %s", s.Name, s.Source)
	switch {
	case filepath.Dir(s.Source) == filepath.Dir(s.Dir):
		hints = append(hints, "fork it again: "+a.Command("fork", filepath.Base(s.Source), s.Name))
	case strings.HasSuffix(s.Source, ".snapshot"):
		hints = append(hints, "start it from the snapshot again: "+a.Command("up", s.Name, "--from", ShellQuote(s.Source)))
	default:
		hints = append(hints, "import the objects again: "+a.Command("import", s.Name, "…"))
	}
	return message, append(hints, "remove it: "+a.Command("down", s.Name, "--delete"))
}

// DescribeDeath returns a message about a cluster that did not stop cleanly.
func (a *App) DescribeDeath(s cluster.Status, isDead string) string {
	started := a.When(s.Started)
	if started != "" {
		started = "started " + started
	}
	return fmt.Sprintf("cluster %q %s: its process%s ended without a clean stop", s.Name, isDead, InParentheses(PIDOf(s), started))
}

// InParentheses joins the details that are not empty. It returns "" if all are empty.
func InParentheses(details ...string) string {
	details = slices.DeleteFunc(details, func(detail string) bool { return detail == "" })
	if len(details) == 0 {
		return ""
	}
	return " (" + strings.Join(details, ", ") + ")"
}

// PIDOf returns "pid N", or "" if the process has not written its PID yet.
func PIDOf(s cluster.Status) string {
	if s.PID == 0 {
		return ""
	}
	return fmt.Sprintf("pid %d", s.PID)
}

// aliveInstead is a hint for users who did not select a cluster: the one of the project here, or the only one that is alive.
func (a *App) aliveInstead(name string) []string {
	if name != defaultCluster {
		return nil
	}
	all, _ := a.Dock.List() // as in KnownClusters
	all = slices.DeleteFunc(slices.Clone(all), func(s cluster.Status) bool { return s.State != cluster.Alive })
	here := a.ClusterHere()
	switch {
	case slices.ContainsFunc(all, func(s cluster.Status) bool { return s.Name == here }):
		return []string{"to use the cluster of this project: --name " + ShellQuote(here)}
	case len(all) == 1:
		return []string{"to use the cluster that is alive: --name " + ShellQuote(all[0].Name)}
	}
	return nil
}

// KnownClusters returns a hint that lists all clusters, or nil if there are none.
func (a *App) KnownClusters() []string {
	// A hint on the way out of another failure: clusters that cannot be read are not worth a second error.
	all, _ := a.Dock.List()
	if len(all) == 0 {
		return nil
	}
	names := make([]string, 0, len(all))
	for _, s := range all {
		names = append(names, fmt.Sprintf("%s (%s)", s.Name, StateWord(s.State)))
	}
	return []string{"clusters: " + strings.Join(names, ", ")}
}

// ErrQuit is returned when the user interrupts a command.
var ErrQuit = errors.New("interrupted")
