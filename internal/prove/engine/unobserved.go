// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
)

// Variants in which the operator does not see what a resource was in between: a change that is taken back, what happens within a step,
// and a custom resource that is replaced by another of the same name.
const (
	undone         = "undone"
	compressed     = "compressed"
	recreateUnseen = "recreate-unseen"
)

// takesBack reports whether a plan changes something of the scenario, and changes it back.
func (p *Plan) takesBack() bool { return p.Family == "input" || p.Variant == undone }

// passing is what the watches of a resource told in a step, besides its end.
type passing struct {
	events int  // at most by one watch
	again  bool // an object had more than one
	gone   bool // one of those was deleted after that
}

// passingIn finds what watches told.
func passingIn(events []*lens.Event, elects *elections) map[lens.Resource]passing {
	type object struct {
		watch           uint64
		namespace, name string
	}
	found := map[lens.Resource]passing{}
	told, of := map[uint64]int{}, map[object]int{}
	for _, e := range events {
		d := e.Delivery
		if d == nil || d.Initial || d.Type == "BOOKMARK" || d.Object == nil || neverEnds(d.Resource) || elects.shows(d) {
			continue
		}
		one := object{d.Watch, d.Object.Namespace, d.Object.Name}
		told[d.Watch]++
		of[one]++
		resource := lens.Resource{Group: d.Resource.Group, Resource: d.Resource.Resource}
		p := found[resource]
		p.events = max(p.events, told[d.Watch])
		p.again = p.again || of[one] > 1
		p.gone = p.gone || of[one] > 1 && d.Type == "DELETED"
		found[resource] = p
	}
	return found
}

func unobservedPlans(c *campaign) (plans []*Plan) {
	subjects := c.subjectResources()
	for step, s := range c.reference {
		for _, resource := range s.delivered {
			if c.canUndo(step) {
				plans = append(plans, &Plan{
					Family: "unobserved", Variant: undone, Step: step, Resource: &resource,
					Says: fmt.Sprintf("The change is made and taken back, and of %s the operator sees only the end", resource.Resource),
				})
			}
			if passing := s.passing[resource]; passing.again {
				p := &Plan{
					Family: "unobserved", Variant: compressed, Step: step, Resource: &resource, rank: 1,
					Says: fmt.Sprintf("Of %s the operator sees only the state at the end of the step", resource.Resource),
				}
				switch {
				case subjects[resource]:
					p.rank = 2 // most of what happens to them is what the operator does
				case passing.gone:
					p.rank = 0
				}
				plans = append(plans, p)
			}
		}
	}
	return append(plans, unseenPlans(c)...)
}

// unseenPlans replace custom resources while the operator does not see them. One with a finalizer stays until it does.
func unseenPlans(c *campaign) (plans []*Plan) {
	at := c.first()
	if at < 0 || at+1 >= len(c.o.Steps) {
		return nil
	}
	held := map[lens.Resource]bool{}
	var resources []lens.Resource
	for _, subject := range c.o.Subjects {
		key, live := find(c.reference[at].state, subject)
		if live == nil {
			continue
		}
		resource := lens.Resource{Group: key.Group, Resource: key.Resource}
		held[resource] = held[resource] || len(live.GetFinalizers()) > 0
		if slices.Contains(c.reference[at].delivered, resource) && !slices.Contains(resources, resource) {
			resources = append(resources, resource)
		}
	}
	for _, resource := range resources {
		if !held[resource] {
			plans = append(plans, &Plan{
				Family: "unobserved", Variant: recreateUnseen, Step: at + 1, Resource: &resource,
				Says: fmt.Sprintf("The %s are deleted and created again under the same names, and the operator sees only the new ones", resource.Resource),
			})
		}
	}
	return plans
}

// overlook holds a watch, and lets the client list again when all is over.
func overlook(r *run, p *Plan) (*disturbance, error) {
	g := newGate(*p.Resource)
	end := func() {
		g.mutex.Lock()
		g.lose = true
		g.mutex.Unlock()
		g.release()
	}
	d := &disturbance{
		mustHit: true,
		faults:  &faults{deliver: g.deliver(r), holds: g.isClosed, any: g.expire},
		heal: func(context.Context) error {
			end()
			return nil
		},
	}
	switch p.Variant {
	case compressed:
		d.deletes = true
	case undone:
		d.act = func(ctx context.Context) error {
			before, err := r.applied(ctx)
			if err != nil {
				return err
			}
			if err := r.do(ctx, p.Step); err != nil {
				return err
			}
			if _, err := r.settle(ctx); err != nil {
				return err
			}
			return r.takeBack(ctx, before)
		}
	case recreateUnseen:
		var subjects []*unstructured.Unstructured
		for _, subject := range r.campaign.o.Subjects {
			if key, live := find(r.campaign.reference[p.Step-1].state, subject); live != nil && g.is(lens.Resource{Group: key.Group, Resource: key.Resource}) {
				subjects = append(subjects, subject)
			}
		}
		d.act = func(ctx context.Context) error {
			if err := r.recreate(ctx, subjects); err != nil {
				return err
			}
			time.AfterFunc(outdated, end) // until then the operator may create children of the old ones, which the garbage collector deletes
			return nil
		}
	default:
		return nil, fmt.Errorf("there is no unobserved %q", p.Variant)
	}
	return d, nil
}

// expire answers each watch that continues one which ended, so that its client lists again.
func (g *gate) expire(_ context.Context, call *lens.Call) lens.Verdict {
	query := call.Request.Query
	if call.Request.Verb != "watch" || !g.is(call.Request.Resource) || query == nil || query.InitialEvents || query.ResourceVersion == "" {
		return lens.Verdict{}
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.ended == 0 {
		return lens.Verdict{}
	}
	g.ended--
	return gone()
}
