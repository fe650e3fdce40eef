// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"slices"
	"testing"

	"github.com/opdock/opdock/generate"
	"github.com/opdock/opdock/internal/project"
)

// Generated files stay when a round is canceled, so the next round names them, and so does the end of the session.
func TestACanceledRoundNamesWhatItGenerated(t *testing.T) {
	screen := &terminal{}
	s := &Session{Options: Options{Screen: screen, Project: &project.Project{Dir: t.TempDir()}}, files: newFiles(t.TempDir())}
	// The second time, all is up to date, and the round is canceled again before it ends.
	changes := []generate.Change{{Path: "api/v1/zz_generated.deepcopy.go"}}
	s.Generate = func(context.Context, generate.Options) (*generate.Result, error) {
		defer func() { changes = nil }()
		return &generate.Result{Changes: changes}, nil
	}
	s.add(workGenerate|workFlags, []string{"api/v1/ship_types.go"}, "")
	s.builder = &builder{output: "/does/not/exist"}
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		s.begin(ctx)
		cancel()
		result := <-s.round.finished
		s.round = nil
		if !result.cancelled {
			t.Fatalf("it was not canceled: %+v", result.round.Problem)
		}
		s.conclude(result)
		s.pending |= workGenerate
	}
	s.begin(t.Context())
	result := <-s.round.finished
	if files := result.round.Steps[0].Files; !slices.Equal(files, []string{"api/v1/zz_generated.deepcopy.go"}) {
		t.Errorf("it did %+v", result.round.Steps)
	}
	s.round = &runningRound{cancel: func() {}, finished: make(chan outcome, 1)}
	s.round.finished <- result
	s.abandon()
	if !slices.Equal(screen.texts, []string{"generated api/v1/zz_generated.deepcopy.go"}) {
		t.Errorf("it said %q", screen.texts)
	}
}

// A change to the manifests while the operator starts does not restart it, so the next round goes on waiting.
func TestACanceledRoundLeavesTheWait(t *testing.T) {
	s := &Session{Options: Options{Screen: &terminal{}, Observer: unobserved{}}}
	s.process, _ = shell(t, "sleep 1000")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if result := s.do(ctx, workAwait|workSamples, Round{}); !result.cancelled || !result.remaining.has(workAwait) || !result.remaining.has(workSamples) {
		t.Errorf("it leaves %b", result.remaining)
	}
}
