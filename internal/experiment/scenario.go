// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"fmt"
	"time"
)

// scenario is one subject and the changes made to it.
type scenario struct {
	*experiment
	subject subject
	title   string
	rest    time.Duration
	// happened returns a number that grows with every record.
	happened func() uint64
	// observe returns the observations of each controller since the last call.
	observe func() map[string]observation

	state State
	// seen holds the observations by change and controller, one for each run.
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

// begin creates the subject in the state that the first change starts from.
func (s *scenario) begin(ctx context.Context) error {
	first := s.Changes[0].From
	return s.disturb(ctx, first, func() error { return s.subject.create(ctx, first) })
}

// make brings the subject to the state that the change starts from, makes the change, and waits until it has no more
// effects.
func (s *scenario) make(ctx context.Context, change *Change) error {
	if s.state != change.From {
		if err := s.disturb(ctx, change.From, func() error { return s.subject.set(ctx, change.From) }); err != nil {
			return err
		}
	}
	s.observe() // discard the records of the preparation
	return s.disturb(ctx, change.State(), func() error { return change.make(ctx, s.subject) })
}

// disturb calls do, and waits until the subject has reached the state and been quiet for a while.
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
