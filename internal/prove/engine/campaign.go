// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/world"
)

// Step is a part of a scenario.
type Step struct {
	Name string
	Do   func(ctx context.Context, objects client.Client) error
	// Deletes means that it deletes custom resources, and Ends that nothing is left of the scenario after it.
	Deletes, Ends bool
	// Subjects is how many custom resources of the scenario are there before it.
	Subjects int
	// Elsewhere means that it changes objects which are neither Subjects nor Others.
	Elsewhere bool
	// Optional means that a campaign goes on without it if the operator does not come to rest in it, or keeps failing.
	Optional bool
}

// Options say what a campaign is about.
type Options struct {
	Operator dev.OperatorOptions
	// Steps are the scenario. Subjects are the custom resources in it, complete with their namespaces, and Others the other objects:
	// each once, as a step first applies it.
	Steps    []Step
	Subjects []*unstructured.Unstructured
	Others   []*unstructured.Unstructured
	// Texts are the addresses and times in the scenario, which are compared wherever they are.
	Texts []string
	// Namespace is of the objects of the scenario that name none. Move takes them to another one; nil if they must stay.
	Namespace string
	Move      func(namespace string)
	// Prepare brings to the cluster what has to be there before the first step; it may be nil.
	Prepare func(ctx context.Context, objects client.Client) error

	// Earlier is the release to upgrade from; nil for no upgrade.
	Earlier *Earlier

	Families []string
	Budget   time.Duration
	// Runs is how many plans are begun at most; 0 is no limit.
	Runs     int
	Seed     uint64
	Parallel int
	Settling Settling
	// FailFast ends the campaign at the first finding that was confirmed.
	FailFast bool
	// Ignores says why an observation does not matter; empty if it does.
	Ignores func(o *Observation) string

	// ControlPlane is the binary, and StateDir a private folder.
	ControlPlane string
	StateDir     string
	// Progress receives how far the campaign is, from one goroutine at a time.
	Progress func(Progress)
	// Only is the one plan to run, for a replay.
	Only *Plan

	// Learned and Replayed are files for recordings: of the first run of the scenario undisturbed, and of the first run of Only.
	// They replace those of earlier campaigns. There are none if the names are empty.
	Learned, Replayed string
	// Live receives what happens in the first run of Only, as it happens; it may be nil.
	Live func(report.Line)
}

// Progress is how far a campaign is.
type Progress struct {
	Stage   string // what is being done: building, learning, disturbing, replaying
	Text    string // the latest news
	Ran     int
	Planned int
	Found   int
	// Left is what remains of the budget.
	Left time.Duration
}

// campaign is what runs have in common.
type campaign struct {
	o        Options
	operator *dev.Operator
	// before is what the cluster has before the first step, and restless what never finishes, disturbed or not.
	before   world.State
	restless map[string]bool
	// unseenBefore are objects of the scenario that are there before the first step, although before does not have them.
	unseenBefore world.State
	// failing are the errors at which the operator is stuck undisturbed, by what is the same about them each time.
	failing map[string]string
	// failingRestarted are those at which it is stuck after restarts only, which is a finding, by the checkpoint.
	failingRestarted map[int]map[string]bool
	learning         sync.Mutex // of both
	// denied is what the operator's role does not allow it undisturbed, by the title of the finding.
	denied map[string]bool
	// spins says that the operator reconciles without a pause undisturbed.
	spins bool
	// exitsAt are the checkpoints at which the operator exits when it is started, which is a finding.
	exitsAt map[int]bool
	// checkpoints are snapshots of the cluster before each step.
	checkpoints []string
	saved       *snapshots
	reference   []*stage
	// anyAge are the resources of which the operator takes a list of any age when it starts.
	anyAge map[lens.Resource]bool
	// stems are the beginnings of names that are different in each run, and fixed are names that are not.
	stems, fixed map[string]bool
	mask         *compare.Mask
	// own are the names of objects that the operator makes for itself when it is started.
	own map[string]bool
	// timed is what the operator writes when its timers go off; nil if that is not known.
	timed timed
	// elections are the objects by which the operator elects its leader.
	elections *elections
	// writesAside means that the operator also writes outside of marked reconciles: of what does that, no timer is known.
	writesAside bool
	// marks is set once a reconcile was marked. A build with marks has none if its controllers are not controller-runtime's.
	marks atomic.Bool
	// servesWebhooks says that the API server calls the operator.
	servesWebhooks bool
	// keepsClaims says that the operator deletes no claims of volumes, and keepsUnused that it deletes none while its custom
	// resources stay.
	keepsClaims, keepsUnused bool
	// keptClaims is how many of them are left when everything is deleted.
	keptClaims int
	sets       claimSets
	writes     int
	// undisturbedRuns is how often the scenario was run without a disturbance.
	undisturbedRuns int
	// installs says that runs begin with the installation of the operator, because their clusters have another release of it.
	installs bool
	// moves is how often the scenario was moved to another namespace, and mayMove whether it still can be.
	moves   int
	mayMove bool
	// watchLate means that the world can only be seen while the operator runs, because it converts.
	watchLate bool
	// freshMask is what a fresh start with the specs of the scenario changes; nil until that is needed.
	freshMask *compare.Mask
	noFresh   error      // why such a start is impossible
	freshly   sync.Mutex // of both
	// effects are the properties of which other valid values were tried, and whether that changed anything.
	effects     map[string]bool
	effectsLock sync.Mutex
	// unplanned is what no plans could be made for, and why.
	unplanned []report.NotTried
	// shown means that a run of Only was recorded.
	shown atomic.Bool

	telling sync.Mutex
}

// Result is what a campaign comes to.
type Result struct {
	Report *report.Report
	// Plans are those that showed a finding, by the ID of the finding.
	Plans map[string]*Plan
	// Digest is of the operator's binary.
	Digest string
}

// UnhealthyError is an operator that cannot be disturbed, because it does not work undisturbed.
type UnhealthyError struct{ Reason string }

func (e *UnhealthyError) Error() string { return e.Reason }

// Run runs a campaign. If the context ends, it returns what was found so far.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	if o.Settling == (Settling{}) {
		o.Settling = DefaultSettling
	}
	c := &campaign{o: o, saved: &snapshots{}, elections: &elections{}, restless: map[string]bool{}, failing: map[string]string{}, denied: map[string]bool{}, own: map[string]bool{}, stems: map[string]bool{}, fixed: map[string]bool{}, mask: compare.NewMask()}
	began := time.Now()
	dir, err := os.MkdirTemp(o.StateDir, "campaign-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for the campaign: %w", err)
	}
	defer os.RemoveAll(dir)
	c.o.StateDir = dir
	if err := c.prepare(ctx); err != nil {
		return nil, err
	}
	if c.operator.Exclusive() && c.o.Parallel > 1 {
		c.o.Parallel = 1
	}
	found := newGathering(c, began)
	if !o.onlyUpgrade() {
		c.tell(Progress{Stage: "learning", Text: "running the scenario undisturbed"})
		wrong, err := c.learnAll(ctx)
		if err != nil {
			return nil, err
		}
		c.servesWebhooks = c.operator.Serves()
		if c.o.Only == nil || c.isRestless() { // a replay is about one finding
			found.addUndisturbed(wrong)
		}
		c.learnHealth(wrong)
		if c.isRestless() {
			c.countWrites()
			found.families["undisturbed"].Planned, found.families["undisturbed"].Ran, found.families["undisturbed"].Clean = 1, 1, 0
			found.skipAll("the operator does not come to rest undisturbed, so there is nothing to compare with: fix that first")
			return found.result(c.built(), false), nil
		}
		if c.writes == 0 && len(c.denied) > 0 {
			found.skipAll("the operator writes nothing undisturbed, because its role does not allow what it does: fix that first")
			return found.result(c.built(), false), nil
		}
	}
	if o.wantsUpgrade() {
		if err := c.upgrade(ctx, found); err != nil && ctx.Err() == nil {
			return nil, err
		}
	}
	c.disturb(ctx, found)
	return found.result(c.built(), ctx.Err() != nil), nil
}

// countWrites counts the writes of an operator that does not come to rest, of which nothing else is learned.
func (c *campaign) countWrites() {
	c.writes = 0
	for _, s := range c.reference {
		c.writes += len(s.writes)
	}
}

// isMarked reports whether the beginning and the end of each reconcile are known.
func (c *campaign) isMarked() bool {
	return c.operator != nil && c.operator.Marked() && c.marks.Load()
}

func (c *campaign) built() built { return built{c.isMarked(), c.operator.Digest()} }

func (c *campaign) tell(p Progress) {
	if c.o.Progress == nil {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	c.o.Progress(p)
}

// learnAll learns, and again without an optional step with which the operator cannot cope.
func (c *campaign) learnAll(ctx context.Context) (wrong []*Observation, err error) {
	for {
		wrong, err = c.learnWithKinds(ctx)
		if err != nil {
			return nil, err
		}
		at := c.tooMuch()
		if at < 0 {
			return wrong, nil
		}
		c.unplanned = append(c.unplanned, report.NotTried{
			Family: "undisturbed", What: fmt.Sprintf("step %q", c.o.Steps[at].Name), Reason: "the operator does not come to rest in it, or keeps failing",
		})
		c.o.Steps = slices.Delete(slices.Clone(c.o.Steps), at, at+1)
		c.restless, c.failing, c.stems, c.fixed, c.mask = map[string]bool{}, map[string]string{}, map[string]bool{}, map[string]bool{}, compare.NewMask()
		if err := c.prepare(ctx); err != nil {
			return nil, err
		}
	}
}

// tooMuch returns the optional step in which the operator does not come to rest or keeps failing, although it is well before; -1 if there is none.
func (c *campaign) tooMuch() int {
	inTrouble := func(s *stage) bool { return s.rested.busy || s.rested.stuck || s.rested.backsOff }
	for i, s := range c.reference {
		if inTrouble(s) {
			if i > 0 && c.o.Steps[i].Optional {
				return i
			}
			return -1
		}
	}
	return -1
}

// learnWithKinds learns, and again with the CRDs of kinds that the operator is found to lack, or in a namespace that it watches.
func (c *campaign) learnWithKinds(ctx context.Context) (wrong []*Observation, err error) {
	prepare := func() error { return c.prepare(ctx) }
	for {
		err = c.whereWatched(func() (err error) {
			wrong, err = c.learn(ctx)
			return err
		}, prepare)
		var lacks *dev.LackingError
		if !errors.As(err, &lacks) || !c.operator.Need(ctx, lacks.Kinds) {
			return wrong, err
		}
		if err := prepare(); err != nil {
			return nil, err
		}
	}
}

// nodes is how many there are: many operators want each of three pods on another one. Copies of the cluster have as many.
const nodes = 3

// prepare builds the operator, unless that is done, and makes the cluster that all others are copies of.
func (c *campaign) prepare(ctx context.Context) (err error) {
	if c.operator == nil {
		c.tell(Progress{Stage: "building", Text: "starting a cluster"})
	} else {
		c.tell(Progress{Stage: "learning", Text: "starting a cluster with the kinds that the operator needs"})
	}
	base, err := cluster.Start(ctx, cluster.Options{Binary: c.o.ControlPlane, Nodes: nodes})
	if err != nil {
		return fmt.Errorf("starting a cluster: %w", err)
	}
	defer func() { err = errors.Join(err, base.Stop()) }()
	admin := unlimited(base.Config())
	if c.operator == nil {
		c.tell(Progress{Stage: "building", Text: "building the operator"})
		if c.operator, err = dev.NewOperator(ctx, c.o.Operator, admin); err != nil {
			return err
		}
	}
	if err := c.operator.Install(ctx, admin); err != nil {
		return err
	}
	objects, err := client.New(admin, client.Options{})
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	if c.moves == 0 {
		c.follow(c.operator.Watches())
	}
	if err := apply.EnsureNamespace(ctx, objects, c.o.Namespace); err != nil {
		return err
	}
	if c.o.Prepare != nil {
		if err := c.o.Prepare(ctx, objects); err != nil {
			return err
		}
	}
	seen, err := world.Watch(ctx, admin, nil)
	if err != nil {
		return err
	}
	defer seen.Close()
	if err := quietFor(ctx, seen, patience*c.o.Settling.Quiet); err != nil {
		return err
	}
	file := filepath.Join(c.o.StateDir, "0.snapshot")
	if _, err := base.Save(ctx, file); err != nil {
		return err
	}
	c.before = seen.State()
	if c.unseenBefore, err = c.unseen(ctx, objects, c.before); err != nil {
		return err
	}
	c.checkpoints = []string{file}
	return nil
}

// quietFor waits until nothing has changed for a while.
func quietFor(ctx context.Context, w *world.World, quiet time.Duration) error {
	for {
		news, _, err := w.News()
		if err != nil {
			return err
		}
		pause := time.NewTimer(quiet)
		select {
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		case <-news:
			pause.Stop()
		case <-pause.C:
			if _, last, err := w.News(); err != nil || time.Since(last) >= quiet { // else a watch has just begun or ended
				return err
			}
		}
	}
}
