// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/opdock/opdock/internal/lens"
)

// Families that disturb the operator's view of the cluster.

func stalePlans(c *campaign) (plans []*Plan) {
	for step, s := range c.reference {
		for _, resource := range s.delivered {
			plans = append(plans, &Plan{
				Family: "stale", Variant: "lag", Step: step, Resource: &resource, rank: s.viewRank(resource),
				Says: fmt.Sprintf("The watch of %s lags behind while everything else goes on, and then catches up", resource.Resource),
			})
		}
	}
	return append(plans, olderPlans(c)...)
}

// gate holds the events of one resource's watches until it is opened.
type gate struct {
	resource lens.Resource
	open     chan struct{}
	once     sync.Once
	// lose is set when what was held is not to be seen.
	mutex sync.Mutex
	lose  bool
}

func (g *gate) release() { g.once.Do(func() { close(g.open) }) }

func (g *gate) is(r lens.Resource) bool {
	return r.Group == g.resource.Group && r.Resource == g.resource.Resource
}

func (g *gate) isClosed() bool {
	select {
	case <-g.open:
		return false
	default:
		return true
	}
}

func (g *gate) isLost() bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.lose
}

// deliver holds all events, bookmarks included: letting later ones pass would lose the earlier ones for good.
func (g *gate) deliver(r *run) func(ctx context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict {
	return func(ctx context.Context, watch *lens.Call, _ *lens.Frame) lens.Verdict {
		if !g.is(watch.Request.Resource) {
			return lens.Verdict{}
		}
		if !g.isClosed() {
			return lens.Verdict{}
		}
		r.board.hit()
		select {
		case <-g.open:
			if g.isLost() {
				return lens.Verdict{Action: lens.End, Say: "the watch breaks"}
			}
			return lens.Verdict{Say: "held back"}
		case <-ctx.Done():
			return lens.Verdict{Action: lens.Abort}
		}
	}
}

func hold(r *run, p *Plan) (*disturbance, error) {
	if p.Variant == olderList {
		return restartOlder(r, p), nil
	}
	g := &gate{resource: *p.Resource, open: make(chan struct{})}
	return &disturbance{deletes: true, mustHit: true, faults: &faults{deliver: g.deliver(r), holds: g.isClosed}, heal: func(context.Context) error {
		g.release()
		return nil
	}}, nil
}

func unobservedPlans(c *campaign) (plans []*Plan) {
	for step, s := range c.reference {
		if step == 0 || c.o.Steps[step].Ends {
			continue
		}
		for _, resource := range s.delivered {
			plans = append(plans, &Plan{
				Family: "unobserved", Variant: "undone", Step: step, Resource: &resource,
				Says: fmt.Sprintf("The change is made and taken back, and of %s the operator sees only the end", resource.Resource),
			})
		}
	}
	return plans
}

// overlook does a step and takes it back while a watch is held, and lets the client list again after that.
func overlook(r *run, p *Plan) (*disturbance, error) {
	g := &gate{resource: *p.Resource, open: make(chan struct{})}
	expired := false
	d := &disturbance{mustHit: true}
	d.faults = &faults{
		deliver: g.deliver(r),
		holds:   g.isClosed,
		any: func(_ context.Context, call *lens.Call) lens.Verdict {
			query := call.Request.Query
			if call.Request.Verb != "watch" || !g.is(call.Request.Resource) || query == nil || query.InitialEvents || query.ResourceVersion == "" || !g.isLost() {
				return lens.Verdict{}
			}
			g.mutex.Lock()
			defer g.mutex.Unlock()
			if expired {
				return lens.Verdict{}
			}
			expired = true
			return gone()
		},
	}
	before := r.specs()
	d.act = func(ctx context.Context) error {
		if err := r.do(ctx, p.Step); err != nil {
			return err
		}
		if _, err := r.settle(ctx); err != nil {
			return err
		}
		return r.restore(ctx, before)
	}
	d.heal = func(context.Context) error {
		g.mutex.Lock()
		g.lose = true
		g.mutex.Unlock()
		g.release()
		return nil
	}
	return d, nil
}
