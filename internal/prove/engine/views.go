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

// lagAfter is the variant in which a watch lags behind from its second event on. The first one is often what the operator acts on: if
// that is held as well, nothing happens until the watch catches up.
const lagAfter = "lag-after"

func stalePlans(c *campaign) (plans []*Plan) {
	subjects := c.subjectResources()
	for step, s := range c.reference {
		for _, resource := range s.delivered {
			plans = append(plans, &Plan{
				Family: "stale", Variant: "lag", Step: step, Resource: &resource, rank: s.viewRank(resource),
				Says: fmt.Sprintf("The watch of %s lags behind while everything else goes on, and then catches up", resource.Resource),
			})
			if s.passing[resource].events < 2 { //nolint:mnd // there is nothing to hold after the first
				continue
			}
			after := &Plan{
				Family: "stale", Variant: lagAfter, Step: step, Resource: &resource, rank: 1,
				Says: fmt.Sprintf("The watch of %s lags behind after its first event while everything else goes on, and then catches up", resource.Resource),
			}
			if subjects[resource] {
				after.rank = 0
			}
			plans = append(plans, after)
		}
	}
	return append(plans, olderPlans(c)...)
}

// subjectResources are the resources of the custom resources.
func (c *campaign) subjectResources() map[lens.Resource]bool {
	found := map[lens.Resource]bool{}
	for _, s := range c.reference {
		for _, subject := range c.o.Subjects {
			if key, live := find(s.state, subject); live != nil {
				found[lens.Resource{Group: key.Group, Resource: key.Resource}] = true
			}
		}
	}
	return found
}

// gate holds the events of one resource's watches until it is opened.
type gate struct {
	resource lens.Resource
	// late lets the first event of each watch pass.
	late bool
	open chan struct{}
	once sync.Once

	mutex sync.Mutex
	// begun are the watches whose first event has passed.
	begun map[uint64]bool
	// lose is set when what was held is not to be seen, and ended is how many watches ended because of that.
	lose  bool
	ended int
}

func newGate(resource lens.Resource) *gate {
	return &gate{resource: resource, open: make(chan struct{}), begun: map[uint64]bool{}}
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

// passes reports whether an event comes before those that are held.
func (g *gate) passes(watch *lens.Call, frame *lens.Frame) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if !g.late || g.begun[watch.Request.ID] {
		return false
	}
	g.begun[watch.Request.ID] = frame.Type != "BOOKMARK"
	return true
}

// deliver holds all events, bookmarks included: letting later ones pass would lose the earlier ones for good.
func (g *gate) deliver(r *run) func(ctx context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict {
	return func(ctx context.Context, watch *lens.Call, frame *lens.Frame) lens.Verdict {
		if !g.is(watch.Request.Resource) || !g.isClosed() || g.passes(watch, frame) {
			return lens.Verdict{}
		}
		r.board.hit()
		select {
		case <-g.open:
			if g.isLost() {
				g.mutex.Lock()
				defer g.mutex.Unlock()
				g.ended++
				return lens.Verdict{Action: lens.End, Say: "the watch breaks"}
			}
			return lens.Verdict{Say: "held back"}
		case <-ctx.Done():
			return lens.Verdict{Action: lens.Abort}
		}
	}
}

func hold(r *run, p *Plan) (*disturbance, error) {
	switch p.Variant {
	case olderList, olderChild:
		return restartOlder(r, p), nil
	case olderDeletion:
		return restartDeleted(r, p), nil
	}
	g := newGate(*p.Resource)
	g.late = p.Variant == lagAfter
	return &disturbance{deletes: true, mustHit: true, faults: &faults{deliver: g.deliver(r), holds: g.isClosed}, heal: func(context.Context) error {
		g.release()
		return nil
	}}, nil
}
