// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/lens"
)

// olderList is the variant in which an operator is restarted with a list from before the step. That
// is valid only for clients that accept a list of any age; others get the current state when they
// start.
const olderList = "older-list"

// takesAnyAge reports whether a list request accepts a state that is not the latest.
func takesAnyAge(r *lens.Request) bool {
	q := r.Query
	return r.Verb == "list" && q != nil && q.ResourceVersion == "0" && (q.Match == "" || q.Match == "NotOlderThan") && !q.Continue
}

// learnLists keeps which resources the operator lists at any age when it starts.
func (c *campaign) learnLists(events []*lens.Event) {
	for _, e := range events {
		if e.Request != nil && takesAnyAge(e.Request) {
			c.anyAge[lens.Resource{Group: e.Request.Resource.Group, Resource: e.Request.Resource.Resource}] = true
		}
	}
}

func olderPlans(c *campaign) (plans []*Plan) {
	for step, s := range c.reference {
		for _, resource := range s.delivered {
			if !c.anyAge[resource] {
				continue
			}
			plans = append(plans, &Plan{
				Family: "stale", Variant: olderList, Step: step, Resource: &resource, rank: 1 + s.viewRank(resource),
				Says: fmt.Sprintf("The operator is restarted after the step, and the list of %s that it gets is from before the step; then the watch catches up", resource.Resource),
			})
		}
	}
	return plans
}

// older answers lists of one resource as they were, and holds the watches that continue from there.
type older struct {
	gate *gate

	mutex sync.Mutex
	asOf  string // empty as long as everything is current
	shown bool   // an older list
	end   func() // lets the operator see the latest state
}

func (o *older) list(r *run) func(context.Context, *lens.Call) lens.Verdict {
	return func(_ context.Context, call *lens.Call) lens.Verdict {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if o.asOf == "" || !o.gate.isClosed() || !o.gate.is(call.Request.Resource) || !takesAnyAge(&call.Request) {
			return lens.Verdict{}
		}
		if !o.shown {
			o.shown = true
			time.AfterFunc(outdated, o.end)
		}
		r.board.hit()
		return lens.Verdict{AsOf: o.asOf, Say: "answered from before the step"}
	}
}

func (o *older) holds() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.shown && o.gate.isClosed()
}

// outdated is how long an older state lasts at most. A real API server catches up soon as well; and an operator may create, as long
// as that lasts, what the garbage collector deletes again and again.
const outdated = 5 * time.Second

func restartOlder(r *run, p *Plan) *disturbance {
	o := &older{gate: &gate{resource: *p.Resource, open: make(chan struct{})}}
	held := o.gate.deliver(r)
	// The operator may delete something because of an older state, and restore it when it receives the latest state.
	end := sync.OnceValue(func() []*Observation {
		wrong := r.deletions(p.Step)
		o.gate.release()
		return wrong
	})
	return &disturbance{
		mustHit: true, afterStep: true,
		faults: &faults{any: o.list(r), holds: o.holds, deliver: func(ctx context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict {
			if !o.holds() {
				return lens.Verdict{}
			}
			return held(ctx, watch, frame)
		}},
		act: func(ctx context.Context) error {
			var before corev1.NamespaceList
			if err := r.objects.List(ctx, &before, client.Limit(1)); err != nil {
				return fmt.Errorf("reading the current resource version: %w", err)
			}
			if err := r.do(ctx, p.Step); err != nil {
				return err
			}
			if _, err := r.settle(ctx); err != nil {
				return err
			}
			o.mutex.Lock()
			o.asOf, o.end = before.ResourceVersion, func() { end() }
			o.mutex.Unlock()
			r.note("the operator is killed")
			r.kill() // settling restarts it
			_, err := r.settleFor(ctx, patience)
			return err
		},
		broken: func(rested) []*Observation { return end() },
		heal:   func(context.Context) error { return nil }, // judged when it has caught up
	}
}
