// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/internal/freeport"
)

// side is one of two managers that run at the same time on one cluster, in separate namespaces. The load of the
// machine affects both alike.
type side struct {
	*fleet
	// records is the address of the recorder. It is empty if there is none.
	records string
}

// measureWhy lets one side record. The sides change roles after each round.
func measureWhy(ctx context.Context, e environment, program string) (result whyResult, err error) {
	err = withFleet(ctx, e, program, "why", func(f *fleet) error {
		if err := f.stop(); err != nil {
			return err
		}
		var sides [2]*side
		for i := range sides {
			one := *f
			one.namespace = fmt.Sprintf("side-%d", i)
			sides[i] = &side{fleet: &one}
			defer sides[i].stop() //nolint:errcheck // already stopped, except after an error
			if err := f.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: one.namespace}}); err != nil {
				return err
			}
		}
		rounds := whyRounds * e.runs
		for round := range rounds {
			on, off := sides[round%2], sides[(round+1)%2]
			if err := measureWhyRound(ctx, on, off, &result, round == rounds-1); err != nil {
				return err
			}
			recording, without := result.on[round], result.off[round]
			say("Round %d of %d: recording %s of CPU time for %d reconciles, without %s for %d",
				round+1, rounds, ms(recording.cpu), recording.count, ms(without.cpu), without.count)
		}
		return nil
	})
	return result, err
}

// measureWhyRound starts two new managers, measures them with their AppServices, and deletes the AppServices. It
// reads the memory only on request, because that takes a while.
func measureWhyRound(ctx context.Context, on, off *side, result *whyResult, memory bool) (err error) {
	if on.records, err = freeport.Address(); err != nil {
		return err
	}
	off.records = ""
	var runs [2]whyRun
	both := func(do func(ctx context.Context, s *side, run *whyRun) error) error {
		group, groupContext := errgroup.WithContext(ctx)
		for i, s := range []*side{on, off} {
			group.Go(func() error { return do(groupContext, s, &runs[i]) })
		}
		return group.Wait()
	}
	// They start one after the other, so they do not choose the same ports.
	for _, s := range []*side{on, off} {
		if err := s.begin(ctx); err != nil {
			return err
		}
	}
	for _, do := range []func(context.Context, *side, *whyRun) error{beforeRun, duringRun, afterRun} {
		if err := both(do); err != nil {
			return err
		}
	}
	result.on, result.off = append(result.on, runs[0]), append(result.off, runs[1])
	if memory {
		if result.residentOn, err = residentAfter(ctx, on.pid()); err != nil {
			return err
		}
		if result.residentOff, err = residentAfter(ctx, off.pid()); err != nil {
			return err
		}
	}
	return both(func(ctx context.Context, s *side, _ *whyRun) error {
		if err := s.deleteAppServices(ctx); err != nil {
			return err
		}
		return s.stop()
	})
}

func (s *side) begin(ctx context.Context) error {
	s.arguments = []string{"--namespaces", s.namespace}
	if s.records != "" {
		s.arguments = append(s.arguments, "--why-bind-address", s.records)
	}
	return s.startReady(ctx)
}

// beforeRun stores the CPU time and the reconciles of the start-up.
func beforeRun(ctx context.Context, s *side, run *whyRun) error {
	before, err := s.scrape(ctx)
	if err != nil {
		return err
	}
	run.cpu = cpuOf(before)
	run.count, _ = reconcilesOf(before, "")
	return nil
}

func duringRun(ctx context.Context, s *side, run *whyRun) (err error) {
	run.took, err = s.createAppServices(ctx, whySize, appName)
	return err
}

// afterRun scrapes the metrics twice. The first scrape makes the recorder process its backlog, so the CPU time of the
// second includes that work.
func afterRun(ctx context.Context, s *side, run *whyRun) error {
	if _, err := s.scrape(ctx); err != nil {
		return err
	}
	after, err := s.scrape(ctx)
	if err != nil {
		return err
	}
	run.cpu = cpuOf(after) - run.cpu
	all, _ := reconcilesOf(after, "")
	run.count = all - run.count
	count, took := reconcilesOf(after, "appservice")
	run.reconcile = took / time.Duration(max(1, count))
	if s.records != "" {
		run.summary, err = summaryOf(ctx, s.records)
	}
	return err
}
