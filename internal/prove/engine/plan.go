// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/lens"
)

// Families of disturbances, in the order in which they are reported.
var Families = []string{"crash", "lost", "refused", "stale", "unobserved", "slow", "drift", "pods", "order", "input", "upgrade"}

// Plan is a run: one disturbance, at one moment. It can be stored, and run again.
type Plan struct {
	Family  string `json:"family"`
	Variant string `json:"variant"`
	// Step is the one that is disturbed; the run begins before it.
	Step int `json:"step"`
	// At is the write that is disturbed.
	At *Moment `json:"at,omitempty"`
	// Resource is the resource of a watch.
	Resource *lens.Resource `json:"resource,omitempty"`
	// Object, Path and Value describe the change on the cluster.
	Object string   `json:"object,omitempty"`
	Path   []string `json:"path,omitempty"`
	Value  any      `json:"value,omitempty"`
	// Fresh means that the change must lead to the same state as a fresh start with the changed spec.
	Fresh bool `json:"fresh,omitempty"`
	// Says describes the disturbance for people.
	Says string `json:"says"`
	// rank orders plans of a family: the most telling have the lowest.
	rank int
}

// ID is the same for the same plan in each campaign.
func (p *Plan) ID() string {
	plain := *p
	plain.Says = ""
	encoded, err := json.Marshal(plain)
	var read any // a value that was stored has its fields in another order
	if err == nil {
		err = json.Unmarshal(encoded, &read)
	}
	if err == nil {
		encoded, err = json.Marshal(read)
	}
	if err != nil {
		encoded = fmt.Appendf(nil, "%+v", plain)
	}
	sum := sha256.Sum256(encoded)
	return p.Family + "-" + hex.EncodeToString(sum[:4])
}

// disturbance is how a plan is carried out.
type disturbance struct {
	faults *faults
	// act takes the place of the step; the state is then compared with how the step before ended, unless afterStep is set.
	act       func(ctx context.Context) error
	afterStep bool
	// heal is done when all is quiet; after it everything must be as undisturbed. broken looks at the state before.
	heal   func(ctx context.Context) error
	broken func(over rested) []*Observation
	// meanwhile returns what is wrong while the disturbance lasts, such as custom resources that report Ready. Operators may need a
	// while to notice.
	meanwhile func(ctx context.Context) ([]*Observation, error)
	// nudge lets the operator try again now what it would try again later.
	nudge func(ctx context.Context) error
	// counts means that nothing may be created or deleted more often than undisturbed.
	counts bool
	// deletes means that the operator may not delete anything more often than undisturbed. Deletions by the garbage
	// collector do not count: an operator cannot know that an owner is gone before a watch reports it.
	deletes bool
	// may says which objects may be replaced by others of the same name; nil if that is not judged.
	may mayReplace
	// spares means that the operator may delete nothing that was there before: only other custom resources come and go.
	spares bool
	// futile says why the operator cannot reach the undisturbed state; empty if it can. Then only its health is judged.
	futile func(ctx context.Context) (reason string, err error)
	// mustHit means that the run cannot be judged if the fault did not happen.
	mustHit bool
}

// family creates plans and carries them out.
type family struct {
	plans   func(c *campaign) []*Plan
	disturb func(r *run, p *Plan) (*disturbance, error)
}

var families = map[string]family{
	"crash":      {crashPlans, crash},
	"lost":       {lostPlans, lose},
	"refused":    {refusedPlans, refuse},
	"stale":      {stalePlans, hold},
	"unobserved": {unobservedPlans, overlook},
	"slow":       {slowPlans, slow},
	"drift":      {driftPlans, drift},
	"pods":       {podsPlans, breakPods},
	"order":      {orderPlans, reorder},
	"input":      {inputPlans, feed},
}

// plans are all runs that there could be, the most telling first, families in turn.
func (c *campaign) plans() []*Plan {
	random := rand.New(rand.NewPCG(c.o.Seed, 1)) //nolint:gosec // it is to be the same for the same seed
	var queues [][]*Plan
	for _, name := range Families {
		one, known := families[name]
		if !known || len(c.o.Families) > 0 && !slices.Contains(c.o.Families, name) {
			continue
		}
		plans := unique(one.plans(c))
		random.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
		slices.SortStableFunc(plans, func(a, b *Plan) int { return a.rank - b.rank })
		queues = append(queues, plans)
	}
	var all []*Plan
	for i := 0; ; i++ {
		before := len(all)
		for _, queue := range queues {
			if i < len(queue) {
				all = append(all, queue[i])
			}
		}
		if len(all) == before {
			return all
		}
	}
}

func unique(plans []*Plan) []*Plan {
	seen := map[string]bool{}
	return slices.DeleteFunc(plans, func(p *Plan) bool {
		id := p.ID()
		again := seen[id]
		seen[id] = true
		return again
	})
}

// moments are the writes of all steps that are worth a disturbance. Those after which least can be taken for granted come first; further
// ones of the same kind tell less.
func (c *campaign) moments(each func(step int, w *write, rank int)) {
	for step, s := range c.reference {
		alike := map[Moment]int{}
		for i := range s.writes {
			w := &s.writes[i]
			kind := Moment{Verb: w.Verb, Group: w.Group, Resource: w.Resource, Subresource: w.Subresource}
			each(step, w, s.urgency(i)+alike[kind])
			alike[kind]++
		}
	}
}

// urgency ranks a write by what an operator may have half done after it: something is gone for good and more was to follow; more was to
// follow; something is new, of which it may not know. A disturbance of the last write of a reconcile is much like a restart at rest.
func (s *stage) urgency(at int) int {
	const goneWithMore, goneOrMore, isNew, other, last = 0, 1, 2, 3, 4
	w := &s.writes[at]
	gone := w.isFinal()
	more := w.reconcile != 0 && slices.ContainsFunc(s.writes[at+1:], func(later write) bool { return later.reconcile == w.reconcile })
	switch {
	case gone && more:
		return goneWithMore
	case gone || more:
		return goneOrMore
	case w.Verb == "create":
		return isNew
	case w.reconcile == 0:
		return other
	}
	return last
}

// isFinal reports whether a write cannot be taken back: a deletion, or a finalizer that lets one go on.
func (w *write) isFinal() bool {
	return w.Verb == "delete" || w.Verb == "deletecollection" || slices.ContainsFunc(w.fields, func(path string) bool { return strings.HasPrefix(path, "metadata.finalizers") })
}

// viewRank ranks an older view of a resource: one that a deletion may depend on tells most.
func (s *stage) viewRank(resource lens.Resource) int {
	if s.beforeDelete[resource] {
		return 0
	}
	return 1
}
