// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/opdock/opdock/internal/lens"
)

// Moment is a write, in words that are the same in each run.
type Moment struct {
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Nth counts such requests in a step, from 1.
	Nth int `json:"nth"`
}

// String formats it as trace does.
func (m Moment) String() string {
	text := m.Verb + " " + m.Resource
	if m.Subresource != "" {
		text += "/" + m.Subresource
	}
	if m.Name != "" {
		text += " " + m.Name
	}
	if m.Nth > 1 {
		text += fmt.Sprintf(" (the %s in this step)", ordinal(m.Nth))
	}
	return text
}

func ordinal(n int) string {
	switch {
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// momentOf names a write. What the API server names is named by how its name begins.
func momentOf(call *lens.Call) Moment {
	r := &call.Request.Resource
	m := Moment{Verb: call.Request.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name}
	if m.Name == "" && call.Body != nil {
		if body := call.Body(); body != nil {
			m.Name = body.GetName()
			if prefix := body.GetGenerateName(); m.Name == "" && prefix != "" {
				m.Name = prefix + "*"
			}
		}
	}
	return m
}

// isMoment reports whether a run may be disturbed at a request.
func isMoment(r *lens.Request) bool { return r.IsWrite() && !neverEnds(r.Resource) }

// faults is one disturbance. Functions that are nil let everything pass. The moment of a write counts its kind.
type faults struct {
	// request is called for writes before they are forwarded, and answer when a response arrives, whatever it is.
	request func(ctx context.Context, m Moment) lens.Verdict
	answer  func(ctx context.Context, m Moment, status int) lens.Verdict
	// any is called for each request that is not a write.
	any func(ctx context.Context, call *lens.Call) lens.Verdict
	// deliver is called for watch events.
	deliver func(ctx context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict
	// holds reports whether events are held back now: a reconcile may be waiting for them.
	holds func() bool
}

// switchboard is where a run changes what becomes of what passes. It counts writes.
type switchboard struct {
	// named gives moments names that are the same in each run.
	named func(Moment) Moment

	mutex    sync.Mutex
	counts   map[Moment]int
	pending  map[uint64]Moment // by the ID of the request
	seen     []seenMoment
	answered []seenMoment        // with those that were refused
	sources  map[Moment][]string // the lines that sent the writes of the disturbed step
	current  *faults
	happened bool // the fault
	// keepsSent means that what writes send is kept. Only plans need it.
	keepsSent bool
}

// seenMoment is a write and the ID of its request.
type seenMoment struct {
	Moment
	id     uint64
	status int
	sent   map[string]any // nil if it was not kept, or cannot be read
}

func newSwitchboard(named func(Moment) Moment) *switchboard {
	return &switchboard{named: named, counts: map[Moment]int{}, pending: map[uint64]Moment{}, sources: map[Moment][]string{}}
}

// step resets the counts, and disturbs from now on.
func (s *switchboard) step(f *faults) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clear(s.counts)
	s.seen, s.answered = nil, nil
	s.current = f
	if f != nil {
		clear(s.sources)
	}
}

// keepSent keeps what writes send from now on.
func (s *switchboard) keepSent() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.keepsSent = true
}

// calm ends the disturbance.
func (s *switchboard) calm() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.current = nil
}

// holds reports whether the disturbance holds back events.
func (s *switchboard) holds() bool {
	s.mutex.Lock()
	f := s.current
	s.mutex.Unlock()
	return f != nil && f.holds != nil && f.holds()
}

// writes returns the writes of the step so far.
func (s *switchboard) writes() []seenMoment {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]seenMoment(nil), s.seen...)
}

// answers returns all writes of the step that were answered, in this order. A refused write is no moment.
func (s *switchboard) answers() []seenMoment {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]seenMoment(nil), s.answered...)
}

// sourceOf returns the lines that sent a write of the disturbed step.
func (s *switchboard) sourceOf(m Moment) []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.sources[m]
}

func (s *switchboard) hit() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.happened = true
}

func (s *switchboard) wasHit() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.happened
}

// Request implements lens.Faults.
func (s *switchboard) Request(ctx context.Context, call *lens.Call) lens.Verdict {
	if !isMoment(&call.Request) {
		s.mutex.Lock()
		f := s.current
		s.mutex.Unlock()
		if f != nil && f.any != nil {
			return f.any(ctx, call)
		}
		return lens.Verdict{}
	}
	m := s.named(momentOf(call))
	s.mutex.Lock()
	s.counts[m]++
	m.Nth = s.counts[m]
	s.pending[call.Request.ID] = m
	if _, told := s.sources[m]; !told && len(call.Request.Source) > 0 {
		s.sources[m] = call.Request.Source // later steps have the same moments
	}
	f := s.current
	s.mutex.Unlock()
	if f != nil && f.request != nil {
		return f.request(ctx, m)
	}
	return lens.Verdict{}
}

// Answer implements lens.Faults.
func (s *switchboard) Answer(ctx context.Context, call *lens.Call, status int) lens.Verdict {
	if !isMoment(&call.Request) {
		return lens.Verdict{}
	}
	s.mutex.Lock()
	m := s.pending[call.Request.ID]
	delete(s.pending, call.Request.ID)
	seen := seenMoment{Moment: m, id: call.Request.ID, status: status}
	s.answered = append(s.answered, seen)
	if status < http.StatusBadRequest {
		if s.keepsSent && call.Body != nil {
			if body := call.Body(); body != nil {
				seen.sent = body.Object
			}
		}
		s.seen = append(s.seen, seen)
	}
	f := s.current
	s.mutex.Unlock()
	if f != nil && f.answer != nil {
		return f.answer(ctx, m, status)
	}
	return lens.Verdict{}
}

// Deliver implements lens.Faults.
func (s *switchboard) Deliver(ctx context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict {
	s.mutex.Lock()
	f := s.current
	s.mutex.Unlock()
	if f != nil && f.deliver != nil {
		return f.deliver(ctx, watch, frame)
	}
	return lens.Verdict{}
}
