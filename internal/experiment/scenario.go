// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"time"
)

// scenario is one subject, to which all changes are made.
type scenario struct {
	*experiment
	subject subject
	title   string
	rest    time.Duration
	// happened is a number that changes whenever something has happened.
	happened func() uint64
	// observe returns what each controller has seen since it was last called.
	observe func() map[string]observation

	state State
	// seen are the observations by change and controller, one for each run.
	seen []map[string][]observation
}

func (e *experiment) naiveScenario(containers int) *scenario {
	namespace := e.naiveNamespace(containers)
	return &scenario{
		experiment: e, title: "Deployment, " + containerCount(containers), rest: naiveRest,
		subject:  &deploymentSubject{place{e.client, namespace}, containers, e.behaviour()},
		happened: func() uint64 { return e.naive.last(namespace) },
		observe: func() map[string]observation {
			seen := map[string]observation{}
			news := e.naive.news(namespace)
			for _, watching := range Watchings {
				seen[watching.Name] = observation{trace: newTrace(news[watching.Name])}
			}
			return seen
		},
	}
}

func (e *experiment) fleetScenario(containers int) *scenario {
	namespace := e.fleetNamespace(containers)
	return &scenario{
		experiment: e, title: "AppService, " + containerCount(containers), rest: fleetRest,
		subject:  &appServiceSubject{place{e.client, namespace}, e.behaviour()},
		happened: func() uint64 { return e.witness.last(namespace) + e.fleet.last(namespace) },
		observe: func() map[string]observation {
			all := newTrace(e.witness.news(namespace)[witnessName])
			trace := newTrace(e.fleet.news(namespace)[appServiceName])
			trace.nameWriters(&all)
			return map[string]observation{appServiceName: {trace: trace, seen: all.Events}}
		},
	}
}

func (s *scenario) run(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.title, err)
	}
	s.seen = make([]map[string][]observation, len(s.Changes))
	for range s.Runs {
		for i := range s.Changes {
			change := &s.Changes[i]
			began := time.Now()
			if err := s.make(ctx, change); err != nil {
				return fmt.Errorf("%s: %s: %w", s.title, change.Title, err)
			}
			if s.seen[i] == nil {
				s.seen[i] = map[string][]observation{}
			}
			for controller, observation := range s.observe() {
				s.seen[i][controller] = append(s.seen[i][controller], observation)
			}
			s.report(s.title+": "+change.Title, began)
		}
	}
	return nil
}

// begin creates the subject as the first change needs it.
func (s *scenario) begin(ctx context.Context) error {
	first := s.Changes[0].From
	return s.disturb(ctx, first, func() error { return s.subject.create(ctx, first) })
}

// make makes a change, after what has to be done first, and waits until nothing comes of it any more.
func (s *scenario) make(ctx context.Context, change *Change) error {
	if s.state != change.From {
		if err := s.disturb(ctx, change.From, func() error { return s.subject.set(ctx, change.From) }); err != nil {
			return err
		}
	}
	s.observe() // what came before does not count
	return s.disturb(ctx, change.State(), func() error { return change.make(ctx, s.subject) })
}

// disturb does something, and waits until all is as the state says and has been quiet for a while.
func (s *scenario) disturb(ctx context.Context, state State, do func() error) error {
	missing := func(ctx context.Context) (string, error) { return s.subject.missing(ctx, state) }
	err := func() error {
		s.burst.Lock()
		defer s.burst.Unlock()
		if err := do(); err != nil {
			return err
		}
		return await(ctx, missing)
	}()
	if err != nil {
		return err
	}
	s.state = state
	return awaitRest(ctx, s.rest, s.happened, missing)
}
