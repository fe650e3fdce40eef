// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/world"
)

// stage is the result of an undisturbed step.
type stage struct {
	shape  compare.Shape
	state  world.State
	unseen world.State       // objects of the scenario that the state does not have
	counts map[string]bounds // by the name of the object
	// writes are those that changed something, in order, and delivered are the resources whose watches had something to tell.
	writes    []write
	delivered []lens.Resource
	passing   map[lens.Resource]passing
	// anyAge are the resources of which a list of any age was taken: caches may begin with the first reconcile that needs them.
	anyAge map[lens.Resource]bool
	// terminating are the versions in which objects were being deleted, of the run that the copies of clusters come from.
	terminating []terminatingVersion
	rested      rested
	// beforeDelete are the resources of which something was delivered before the operator deleted something.
	beforeDelete map[lens.Resource]bool
	// deleted is how often the operator itself deleted objects at most.
	deleted map[Moment]int
}

// bounds are how often objects were created and deleted, at least and at most.
type bounds struct{ created, deleted [2]int }

// write is a write of the operator.
type write struct {
	Moment
	object     string
	fields     []string
	controller string
	source     []string // the lines that sent it
	reconcile  uint64   // 0 if it is unknown
	// failure is the error that the reconcile ended with, without what is different each time.
	failure string
	// sent is the object or the patch in it; nil if it is unknown.
	sent map[string]any
}

// referenceRuns is how often the scenario is run undisturbed.
const referenceRuns = 2

// learn runs the scenario undisturbed, and returns problems that already show there.
func (c *campaign) learn(ctx context.Context) (wrong []*Observation, err error) {
	var runs [referenceRuns][]*stage
	var found [referenceRuns][]*Observation
	var failed [referenceRuns]error
	var work sync.WaitGroup
	places := make(chan struct{}, max(c.o.Parallel, 1))
	from := c.checkpoints[0] // the first run adds to them
	for i := range runs {
		places <- struct{}{}
		work.Go(func() {
			runs[i], found[i], failed[i] = c.undisturbed(ctx, from, i == 0)
			<-places
		})
	}
	work.Wait()
	if err := distinct(failed[:]); err != nil {
		return nil, err
	}
	c.undisturbedRuns = referenceRuns
	c.reference, wrong = runs[0], compared(found[0], found[1])
	if c.isRestless() {
		return wrong, nil
	}
	for _, s := range runs[0] {
		for name := range s.rested.unfinished {
			c.restless[name] = true
		}
	}
	for _, s := range slices.Concat(runs[:]...) {
		c.learnFailing(s.rested.failing)
	}
	if slices.ContainsFunc(runs[1], func(s *stage) bool { return s.rested.busy }) {
		// It came to rest only once.
		c.reference = runs[1]
		return wrong, nil
	}
	c.learnClaims(runs[:]...)
	for i, s := range c.reference {
		c.mask.LearnRuns(s.shape, runs[1][i].shape)
		mergeCounts(s.counts, runs[1][i].counts)
		c.learnNames(s.writes, runs[1][i].writes)
		c.writesAside = c.writesAside || c.isMarked() && slices.ContainsFunc(s.writes, func(w write) bool { return w.reconcile == 0 })
		c.writes += len(s.writes)
	}
	for i, s := range c.reference {
		for _, run := range runs {
			c.renumber(run[i].writes)
		}
		s.deleted = mostDeleted(s.writes, runs[1][i].writes)
	}
	return append(wrong, c.restarts(ctx)...), nil
}

// learnNames finds names that are different in each run, and begin the same.
func (c *campaign) learnNames(a, b []write) {
	in := func(writes []write, name string) bool {
		return slices.ContainsFunc(writes, func(w write) bool { return w.Name == name })
	}
	for i := range a {
		name := a[i].Name
		begins := compare.Stem(name)
		if in(b, name) {
			c.fixed[name] = true
			continue
		}
		if begins == name {
			continue
		}
		if slices.ContainsFunc(b, func(w write) bool { return compare.Stem(w.Name) == begins && w.Resource == a[i].Resource }) {
			c.stems[begins] = true
		}
	}
}

// named returns a moment with a name that is the same in each run.
func (c *campaign) named(m Moment) Moment {
	if c.fixed[m.Name] {
		return m
	}
	if begins := compare.Stem(m.Name); c.stems[begins] {
		m.Name = begins
		return m
	}
	m.Name, _ = compare.Inner(m.Name, func(_, stem string) bool { return c.stems[stem] })
	return m
}

// renumber counts writes again, once it is known which names are random.
func (c *campaign) renumber(writes []write) {
	counts := map[Moment]int{}
	for i := range writes {
		before := writes[i].Moment
		m := c.named(before)
		if m == before {
			continue
		}
		m.Nth = 0
		counts[m]++
		m.Nth = counts[m]
		writes[i].Moment = m
	}
}

// isRestless reports whether the operator never came to rest in a step. Then there is nothing to compare
// with.
func (c *campaign) isRestless() bool {
	return slices.ContainsFunc(c.reference, func(s *stage) bool { return s.rested.busy })
}

// undisturbed runs the scenario once, and keeps the state before each step if it is the first time.
func (c *campaign) undisturbed(ctx context.Context, from string, first bool) (stages []*stage, wrong []*Observation, err error) {
	r, err := c.newRun(ctx, from, true)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if first {
		r.board.keepSent()
		if err := r.record(c.o.Learned); err != nil {
			return nil, nil, err
		}
	}
	if _, err := r.settle(ctx); err != nil {
		return nil, nil, err
	}
	if err := r.operator.Waits(); err != nil {
		return nil, nil, err
	}
	started := r.world.State()
	if !first {
		if err := r.shiftVersions(ctx); err != nil {
			return nil, nil, err
		}
	}
	if first {
		c.learnOwn(started)
		if err := r.lens.Flush(ctx); err != nil {
			return nil, nil, err
		}
		c.anyAge = anyAgeIn(r.events(0))
	}
	asked := map[schema.GroupResource]bool{}
	for i := range c.o.Steps {
		s, err := r.stage(ctx, i)
		if err != nil {
			return nil, nil, err
		}
		if err := errors.Join(r.isUsed(), r.operator.Waits()); err != nil {
			return nil, nil, err
		}
		stages = append(stages, s)
		wrong = append(wrong, r.healthOf(i, s.rested)...)
		if s.rested.busy {
			return stages, wrong, nil
		}
		lacking, err := r.ownerRights(ctx, stages, asked) // at the end, the scenario may have deleted the role
		if err != nil {
			return nil, nil, err
		}
		wrong = append(wrong, lacking...)
		wrong = append(wrong, c.unseenChanges(i, s)...)
		wrong = append(wrong, c.strangers(i, s)...)
		if c.o.Steps[i].Ends {
			wrong = append(wrong, c.leftovers(i, c.withoutKeptClaims(stages), started)...)
		}
		if !first && i+1 == c.fullest() && s.rested.timer {
			if c.timed, err = r.awaitTimer(ctx); err != nil {
				return nil, nil, err
			}
		}
		if !first {
			s.terminating = nil
		}
		if first && i+1 < len(c.o.Steps) {
			file := filepath.Join(c.o.StateDir, fmt.Sprintf("%d.snapshot", i+1))
			if err := r.save(ctx, file); err != nil {
				return nil, nil, err
			}
			c.checkpoints = append(c.checkpoints, file)
		}
	}
	return stages, wrong, nil
}

// shiftVersions makes the resource versions of this run differ from those of others. Otherwise an operator that copies one into a
// label seems to write the same text each time.
func (r *run) shiftVersions(ctx context.Context) error {
	lease := &coordinationv1.Lease{}
	lease.SetNamespace(metav1.NamespaceDefault)
	lease.SetName("opdock-prove-shift")
	if err := r.objects.Create(ctx, lease); err != nil {
		return fmt.Errorf("shifting resource versions: %w", err)
	}
	if err := r.objects.Delete(ctx, lease); err != nil {
		return fmt.Errorf("shifting resource versions: %w", err)
	}
	return nil
}

// isUsed returns an error for an operator that does not use the cluster that it was given.
func (r *run) isUsed() error {
	select {
	case <-r.lens.Used():
		return nil
	default:
		return &UnhealthyError{Reason: "the operator runs, but has sent no request to the cluster that it was given: check that it uses KUBECONFIG, for example with ctrl.GetConfig"}
	}
}

// leftovers are objects that are there after everything was deleted, and were not before. What the operator makes when it is started,
// such as a lock, is its own and not of a custom resource.
func (c *campaign) leftovers(step int, left, started world.State) []*Observation {
	var found []compare.Difference
	for key, object := range left {
		_, was := c.before[key]
		if _, own := started[key]; !was && !own {
			name, _ := compare.Name(key, object)
			found = append(found, compare.Difference{Object: name, Want: "absent", Got: "present"})
		}
	}
	return c.differences(step, found)
}

// stage does a step and waits for its end.
func (r *run) stage(ctx context.Context, i int) (*stage, error) {
	changes, _ := r.world.Changes(0)
	since := r.lens.Stream().Last()
	r.board.step(nil)
	if err := r.do(ctx, i); err != nil {
		return nil, err
	}
	over, err := r.settleStage(ctx)
	if err != nil {
		return nil, err
	}
	s := &stage{rested: over, state: r.world.State(), counts: r.countsSince(changes)}
	_, happened := r.world.Changes(changes)
	s.terminating = terminatingIn(happened)
	r.seeSets() // also those that are gone already
	s.shape = r.campaign.shapeOf(s.state)
	if s.unseen, err = r.campaign.unseen(ctx, r.objects, s.state); err != nil {
		return nil, err
	}
	if err := r.lens.Flush(ctx); err != nil {
		return nil, err
	}
	events := r.events(since)
	s.learnWrites(r.board.writes(), events, r.campaign.elections)
	s.passing = passingIn(events, r.campaign.elections)
	s.anyAge = anyAgeIn(events)
	return s, nil
}

// do carries out a step.
func (r *run) do(ctx context.Context, i int) error { return r.doWith(ctx, i, r.objects) }

func (r *run) doWith(ctx context.Context, i int, objects client.Client) error {
	step := &r.campaign.o.Steps[i]
	if r.told != nil {
		r.told(report.Line{At: time.Since(r.began), Text: "step: " + step.Name})
	}
	if err := step.Do(ctx, objects); err != nil {
		return &StepError{Step: step.Name, Err: err}
	}
	return nil
}

// StepError is a step of the scenario that cannot be done.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("step %q: %v", e.Step, e.Err) }
func (e *StepError) Unwrap() error { return e.Err }

// learnWrites collects the writes of a step.
func (s *stage) learnWrites(moments []seenMoment, events []*lens.Event, elects *elections) {
	requests := map[uint64]*lens.Request{}
	controllers, failures := map[uint64]string{}, map[uint64]string{}
	told := map[lens.Resource]bool{}
	s.beforeDelete = map[lens.Resource]bool{}
	for _, e := range events {
		switch {
		case e.Request != nil && e.Request.IsWrite():
			requests[e.Request.ID] = e.Request
			if e.Request.Verb == "delete" && !e.Request.Refused() {
				maps.Copy(s.beforeDelete, told)
			}
		case e.Reconcile != nil:
			controllers[e.Reconcile.ID] = e.Reconcile.Controller
			if e.Reconcile.Error != "" {
				failures[e.Reconcile.ID] = plain(e.Reconcile.Error)
			}
		case e.Delivery != nil && !e.Delivery.Initial && e.Delivery.Type != "BOOKMARK" && !neverEnds(e.Delivery.Resource) && !elects.shows(e.Delivery):
			resource := lens.Resource{Group: e.Delivery.Resource.Group, Resource: e.Delivery.Resource.Resource}
			if !told[resource] {
				told[resource] = true
				s.delivered = append(s.delivered, resource)
			}
		}
	}
	for _, m := range moments {
		r := requests[m.id]
		if r == nil || r.Change != nil && r.Change.None || elects.has(r) {
			continue
		}
		w := write{Moment: m.Moment, sent: m.sent, controller: controllers[r.Reconcile], source: r.Source, reconcile: r.Reconcile, failure: failures[r.Reconcile]}
		if r.Object != nil {
			w.object = r.Object.Kind
		}
		if r.Change != nil {
			for _, one := range r.Change.Fields {
				w.fields = append(w.fields, one.Path)
			}
		}
		s.writes = append(s.writes, w)
	}
}

// mergeCounts widens bounds by those of another run.
func mergeCounts(into, other map[string]bounds) {
	for name := range other {
		if _, known := into[name]; !known {
			into[name] = bounds{}
		}
	}
	for name, b := range into {
		o := other[name]
		b.created = [2]int{min(b.created[0], o.created[0]), max(b.created[1], o.created[1])}
		b.deleted = [2]int{min(b.deleted[0], o.deleted[0]), max(b.deleted[1], o.deleted[1])}
		into[name] = b
	}
}
