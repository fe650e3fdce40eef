// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/gocommand"
)

// assetsVariable is where controller-runtime's envtest finds an API server.
const assetsVariable = "KUBEBUILDER_ASSETS"

// testRun is a run of the project's tests, beside everything else that the session does.
type testRun struct {
	cancel   context.CancelFunc
	finished chan string // receives the message about the result
}

// runTests runs the project's tests.
func (s *Session) runTests(ctx context.Context) {
	if s.tests != nil {
		s.Screen.Say("the tests are still running")
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	run := &testRun{cancel: cancel, finished: make(chan string, 1)}
	s.tests = run
	s.Screen.Say("running the tests: go test ./...")
	go func() {
		defer cancel()
		run.finished <- s.test(ctx)
	}()
}

// endTests cancels a run at the end of the session.
func (s *Session) endTests() {
	if s.tests != nil {
		s.tests.cancel()
		<-s.tests.finished
		s.tests = nil
	}
}

// test returns the result of the tests, with the failures.
func (s *Session) test(ctx context.Context) string {
	began := time.Now()
	env := slices.Clone(s.Env)
	if lastValue(env, assetsVariable) == "" && s.Assets != nil {
		assets, err := s.Assets(ctx)
		if err != nil {
			return fmt.Sprintf("✗ the tests cannot run: %v", err)
		}
		env = append(env, assetsVariable+"="+assets)
	}
	output, err := gocommand.Command(ctx, s.Project.Dir, env, "test", "./...").CombinedOutput()
	took := Duration(time.Since(began))
	log := filepath.Join(s.StateDir, "test.log")
	_ = writePrivate(log, output) // it is only for reading up
	switch {
	case ctx.Err() != nil:
		return ""
	case err == nil:
		return fmt.Sprintf("✓ the tests passed in %s", took)
	}
	failed := failuresIn(string(output))
	if len(failed) == 0 {
		failed = []string{err.Error()}
	}
	return fmt.Sprintf("✗ the tests failed after %s; all of their output is in %s\n    %s", took, log, strings.Join(failed, "\n    "))
}

var (
	packagePassed = regexp.MustCompile(`^(ok  \t|\?   \t|\t\S+\t\tcoverage: )`)
	mostFailures  = 30
)

// failuresIn drops passed tests, and limits the rest.
func failuresIn(output string) (lines []string) {
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" || packagePassed.MatchString(line) || line == "FAIL" {
			continue
		}
		lines = append(lines, line)
	}
	if more := len(lines) - mostFailures; more > 0 {
		lines = append(lines[:mostFailures:mostFailures], "… and "+plural(more, "more line", "more lines"))
	}
	return lines
}
