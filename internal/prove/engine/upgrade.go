// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opdock/opdock/internal/crddiff"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/world"
)

// Earlier is the release of the operator that an upgrade begins with.
type Earlier struct {
	// Ref is the requested release, Name its name for people, and Image the image with its program, if that is not built.
	Ref, Name, Image string
	Operator         dev.OperatorOptions
	// Step makes the objects. It is the first one of the scenario, with objects that this release takes.
	Step     Step
	Subjects []*unstructured.Unstructured
}

const upgradeFamily = "upgrade"

// command is what upgrades from this release.
func (e *Earlier) command() string {
	command := "opdock prove --families upgrade --upgrade-from " + e.Ref
	if e.Image != "" {
		command += " --upgrade-image " + e.Image
	}
	return command
}

// upgradeRuns are the parts of an upgrade that are counted: taking over, deleting what was taken over, and the way back.
var upgradeRuns = []string{"upgrade", "deletion", "downgrade"}

// wantsUpgrade reports whether an upgrade is part of the campaign, and onlyUpgrade whether it is the only part.
func (o *Options) wantsUpgrade() bool {
	return o.Earlier != nil && o.Only == nil && (len(o.Families) == 0 || slices.Contains(o.Families, upgradeFamily))
}

func (o *Options) onlyUpgrade() bool {
	return o.wantsUpgrade() && len(o.Families) == 1
}

// upgrade is a change of releases on one cluster, in copies of it.
type upgrade struct {
	new *campaign
	old *campaign
	// made is what the earlier release made, as it is kept, and taken what became of it.
	made, taken string
	before      world.State
	unfinished  map[string]string
	// idle is whether the earlier release wrote nothing for the objects of the scenario.
	idle bool
	mask *compare.Mask
	// atRest are the writes of the earlier release after a restart, and remains what it leaves when its custom resources are
	// deleted: they have nothing to do with an upgrade.
	atRest  []unasked
	remains world.State
	// found holds observations by part, and stories the operator's actions meanwhile.
	found   map[string][]*Observation
	stories map[string][]report.Line
	ran     []string
	// static holds the observations that follow from the CRDs and the objects alone, so no replay can refute them.
	static  map[*Observation]bool
	replays []upgradeReplay
}

// upgradeReplay holds the parts that ran, and the causes that they showed. Those that the first run does not have are
// there a second time as alike returns them.
type upgradeReplay struct {
	ran  []string
	seen map[string]bool
}

// mostUpgradeReplays is enough to confirm or refute what each of them runs.
const mostUpgradeReplays = 2*confirmations - 1

// upgrade runs an upgrade and the way back.
func (c *campaign) upgrade(ctx context.Context, into *gathering) (err error) {
	u := &upgrade{new: c, mask: compare.NewMask(), static: map[*Observation]bool{}}
	u.begin()
	defer func() { into.addUpgrade(u) }()
	dir := filepath.Join(c.o.StateDir, "earlier")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("creating a directory for the earlier release: %w", err)
	}
	u.old = c.earlier(dir)
	c.tell(Progress{Stage: "building", Text: "building " + c.o.Earlier.Name}) // nothing is upgraded yet
	prepare := func() error {
		if err := u.old.prepare(ctx); err != nil {
			return fmt.Errorf("preparing %s: %w", c.o.Earlier.Name, err)
		}
		return nil
	}
	if err := prepare(); err != nil {
		return err
	}
	before, after, err := u.definitions()
	if err != nil {
		return err
	}
	differences := crddiff.Compare(before, after)
	var text bytes.Buffer
	if err := crddiff.Text(&text, differences, crddiff.DefaultWidth, false); err != nil {
		return err
	}
	if c.o.Operator.Say != nil {
		c.o.Operator.Say(fmt.Sprintf("CRDs of %s and of the new release: %s", c.o.Earlier.Name, strings.ReplaceAll(strings.TrimSpace(text.String()), "\n", "\n  ")))
	}
	u.addStatic(schemaObservations(differences)...)
	u.tell("making the objects with " + c.o.Earlier.Name)
	if err := u.old.whereWatched(func() error { return u.make(ctx) }, prepare); err != nil {
		return fmt.Errorf("making the objects with %s: %w", c.o.Earlier.Name, err)
	}
	u.addStatic(storedObservations(after, u.before)...)
	if err := u.thereAndBack(ctx, after, ""); err != nil {
		return err
	}
	return u.confirm(ctx, after)
}

// earlier is a campaign of the earlier release, with a directory of its own. The new release is installed over its
// objects, so it alone decides where they are, unless the undisturbed runs have done so before.
func (c *campaign) earlier(dir string) *campaign {
	o := c.o
	o.Operator, o.StateDir, o.Steps, o.Subjects = c.o.Earlier.Operator, dir, []Step{c.o.Earlier.Step}, c.o.Earlier.Subjects
	o.Progress = nil
	if !c.o.onlyUpgrade() {
		o.Move = nil // both releases get the same scenario
	}
	return &campaign{
		o: o, saved: c.saved, elections: c.elections, moves: c.moves,
		restless: map[string]bool{}, stems: map[string]bool{}, fixed: map[string]bool{}, mask: compare.NewMask(),
	}
}

// begin makes room for the observations of a run.
func (u *upgrade) begin() {
	u.found, u.stories, u.ran, u.taken = map[string][]*Observation{}, map[string][]report.Line{}, nil, ""
}

// thereAndBack upgrades what the earlier release made, and goes back.
func (u *upgrade) thereAndBack(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition, which string) error {
	name := u.new.o.Earlier.Name
	u.tell("the new release takes over" + which)
	if err := u.takeOver(ctx, definitions); err != nil {
		return fmt.Errorf("upgrading from %s: %w", name, err)
	}
	if u.taken == "" {
		return nil // nothing to go back from
	}
	u.tell("going back to " + name + which)
	if err := u.goBack(ctx); err != nil {
		return fmt.Errorf("downgrading to %s: %w", name, err)
	}
	return nil
}

// confirm runs the upgrade again until it is known which observations are accidents. A replay that breaks down says nothing.
func (u *upgrade) confirm(ctx context.Context, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	first := *u
	defer func() { u.found, u.stories, u.ran, u.taken = first.found, first.stories, first.ran, first.taken }()
	for u.isOpen(first.found) && len(u.replays) < mostUpgradeReplays {
		u.begin()
		if err := u.thereAndBack(ctx, definitions, fmt.Sprintf(", replay %d", len(u.replays)+1)); err != nil {
			return ctx.Err()
		}
		u.replays = append(u.replays, u.replayed(first.found))
	}
	return nil
}

// replayed returns what a replay showed, after what the first run found. What both have under one name confirms nothing
// about other names.
func (u *upgrade) replayed(first map[string][]*Observation) upgradeReplay {
	known, seen := map[string]bool{}, map[string]bool{}
	for _, wrong := range first {
		for _, o := range wrong {
			known[o.cause()] = true
		}
	}
	for _, wrong := range u.found {
		for _, o := range wrong {
			if seen[o.cause()] = true; !known[o.cause()] {
				seen[o.alike()] = true
			}
		}
	}
	return upgradeReplay{u.ran, seen}
}

// alike is the cause without the part of the object's name that may be another one in each run, such as a time.
func (o *Observation) alike() string {
	kind, name, found := strings.Cut(o.Object, " ")
	if !found {
		return o.cause()
	}
	object, _ := compare.Name(world.Key{Kind: kind, Name: name}, &unstructured.Unstructured{})
	like := *o
	like.Title = strings.ReplaceAll(o.Title, o.Object, compare.Stem(object))
	return like.cause()
}

// isOpen reports whether an observation is neither confirmed nor refuted.
func (u *upgrade) isOpen(found map[string][]*Observation) bool {
	for part, wrong := range found {
		for _, o := range wrong {
			if replays, again := u.again(part, o); !u.static[o] && !u.new.ignores(o) && again < confirmations && replays-again < confirmations {
				return true
			}
		}
	}
	return false
}

// again is how many replays ran the part of an observation, and in how many of them it was made again.
func (u *upgrade) again(part string, o *Observation) (replays, again int) {
	for _, replay := range u.replays {
		if slices.Contains(replay.ran, part) {
			replays++
			if replay.seen[o.cause()] || replay.seen[o.alike()] {
				again++
			}
		}
	}
	return replays, again
}

func (u *upgrade) tell(text string) { u.new.tell(Progress{Stage: "upgrading", Text: text}) }

func (u *upgrade) add(part string, wrong ...*Observation) {
	for _, o := range wrong {
		o.Family = upgradeFamily
	}
	u.found[part] = append(u.found[part], wrong...)
}

func (u *upgrade) addStatic(wrong ...*Observation) {
	for _, o := range wrong {
		u.static[o] = true
	}
	u.add("upgrade", wrong...)
}

// definitions are the CRDs of both releases.
func (u *upgrade) definitions() (before, after []*apiextensionsv1.CustomResourceDefinition, err error) {
	if before, err = typed(u.old.operator.Definitions()); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", u.new.o.Earlier.Name, err)
	}
	after, err = typed(u.new.operator.Definitions())
	return before, after, err
}

func typed(definitions []*unstructured.Unstructured) (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	for _, one := range definitions {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, &crd); err != nil {
			return nil, fmt.Errorf("reading CRD %s: %w", one.GetName(), err)
		}
		all = append(all, &crd)
	}
	return all, nil
}

// make runs the earlier release to create its objects. Then it restarts it, to learn the effects of a mere restart.
func (u *upgrade) make(ctx context.Context) (err error) {
	u.made = filepath.Join(u.old.o.StateDir, "made.snapshot")
	err = u.inRun(ctx, u.old, u.old.checkpoints[0], func(r *run) error {
		if _, err := r.settleFor(ctx, patience); err != nil {
			return err
		}
		made, err := r.stage(ctx, 0)
		if err != nil {
			return err
		}
		if made.rested.busy {
			return &UnhealthyError{Reason: "it does not come to rest after the first step of the scenario, so the effects of an upgrade cannot be determined"}
		}
		u.before, u.unfinished, u.idle = u.own(made.state), made.rested.unfinished, len(made.writes) == 0
		for name := range u.unfinished {
			u.old.restless[name], u.new.restless[name] = true, true
		}
		return r.save(ctx, u.made)
	})
	if err != nil {
		return err
	}
	return u.inRun(ctx, u.old, u.made, func(r *run) error {
		if _, err := r.settle(ctx); err != nil {
			return err
		}
		u.mask.Learn(u.shapeOf(u.before), u.shapeOf(u.own(r.world.State())))
		if u.atRest, err = r.unasked(ctx); err != nil {
			return err
		}
		u.remains, err = u.deleteAll(ctx, r, func(left world.State) bool { return len(left) == 0 })
		return err
	})
}

// inRun does something in a separate run.
func (u *upgrade) inRun(ctx context.Context, c *campaign, from string, do func(r *run) error) (err error) {
	r, err := c.newRun(ctx, from, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return do(r)
}

// shapeOf normalizes a state. Addresses and times of the scenario are compared, as in all other families.
func (u *upgrade) shapeOf(state world.State) compare.Shape {
	return compare.ShapeOf(state, nil, u.new.o.Texts...)
}

// own are the objects that belong to neither installation, nor to a controller of the cluster.
func (u *upgrade) own(state world.State) world.State {
	own := world.State{}
	for key, object := range state {
		_, before := u.old.before[key]
		_, after := u.new.before[key]
		if !before && !after && !isDefinition(key) && !ofController(object) {
			own[key] = object
		}
	}
	return own
}

func isDefinition(key world.Key) bool {
	return key.Group == apiextensionsv1.GroupName || key.Group == "admissionregistration.k8s.io"
}
