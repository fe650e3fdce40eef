// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/filelock"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/scenario"
)

// Report is the result of a campaign.
type Report = report.Report

// Finding is one defect, however many runs show it.
type Finding = report.Finding

// Line is one write, event or fault in a run.
type Line = report.Line

// Progress is how far a campaign is.
type Progress = engine.Progress

// Families are all families of disturbances.
func Families() []string { return append([]string(nil), engine.Families...) }

// Options configures a campaign. The zero value tests the project in the current directory.
type Options struct {
	// Dir is a directory of the project.
	Dir string
	// Main is the main package of the operator, if the project has several.
	Main string
	// Scenario is a file with the steps to run. Default: create the samples, change them, change them back and delete them.
	Scenario string
	// Steps are the steps to run, instead of a file. Ignore and Settle are added to the steps, wherever they come from.
	Steps  []Step
	Ignore []Ignore
	Settle Settle
	// Arguments are flags for the operator.
	Arguments []string
	// Env is the environment of the operator and of its build; the process's own if it is nil.
	Env []string
	// Families selects the families to try. Default: all, and upgrade only if UpgradeFrom is set.
	Families []string
	// UpgradeFrom is an earlier release: what its operator has made is taken over by the one in Dir. It is a git ref of the project's
	// repository, "@VERSION" of its Go module, "MODULE@VERSION", or a directory, which starts with a slash or a dot.
	UpgradeFrom string
	// UpgradeImage is the container image of that release. Its program runs instead of one that is built from the source, which
	// still provides the manifests and samples. It is an archive, a directory in the OCI image layout, or a name in a registry.
	UpgradeImage string
	// Budget is the time limit for starting runs; confirming findings may take longer. 0 means DefaultBudget, and a
	// negative value means no limit.
	Budget time.Duration
	// Runs is the maximum number of disturbed runs, not counting runs that confirm findings; 0 means no limit. Unlike
	// a budget, it has the same effect on each machine.
	Runs int
	// FailFast ends the campaign at the first finding that was confirmed.
	FailFast bool
	// Seed determines the order of runs that are equally useful.
	Seed uint64
	// Parallel is how many runs go side by side; 0 is DefaultParallel.
	Parallel int
	// StateDir keeps the build for the next campaign. Default: a temporary directory.
	StateDir string
	// Progress is called with the progress of the campaign; it may be nil.
	Progress func(Progress)
	// Learned is a file for the recording of the undisturbed runs, which opdock rbac and opdock trace read. It does
	// not contain disturbed runs, because their refused requests show nothing about rights. An existing file is
	// replaced. Default: no recording.
	Learned string
	// Replayed is a file for a recording of the run that [Campaign.Replay] shows. It is replaced; none if it is empty.
	Replayed string
	// Live is called with the events of that run as they happen, from one goroutine at a time; it may be nil.
	Live func(Line)
	// Say is called with messages for the user; it may be nil.
	Say func(string)
	// ControlPlane is the binary of the control plane; found, or built, if it is empty.
	ControlPlane string
}

const (
	// DefaultBudget is enough for the most useful runs of an operator with a few kinds.
	DefaultBudget = 10 * time.Minute
	// DefaultParallel suits two cores: much of a run is waiting.
	DefaultParallel = 3
)

// Run runs a campaign. If the context ends, it returns what was found so far, and the report has Interrupted set.
func Run(ctx context.Context, o Options) (*Campaign, error) { return run(ctx, o, nil) }

// run runs a campaign, or only one plan of an earlier one.
func run(ctx context.Context, o Options, again *replayed) (*Campaign, error) {
	var only *engine.Plan
	if again != nil {
		var err error
		if o, err = again.setup.complete(o); err != nil {
			return nil, err
		}
		only = again.plan
	}
	if err := o.checkUpgrade(); err != nil {
		return nil, err
	}
	p, err := project.Find(o.Dir)
	if err != nil {
		return nil, err
	}
	say := o.Say
	if say == nil {
		say = func(string) {}
	}
	p.Warn = say
	main, err := p.Main(o.Main)
	if err != nil {
		return nil, err
	}
	e := engine.Options{Families: o.Families, Budget: o.Budget, Runs: o.Runs, Seed: o.Seed, Parallel: o.Parallel, FailFast: o.FailFast, Progress: o.Progress, ControlPlane: o.ControlPlane, Only: only, Learned: o.Learned, Replayed: o.Replayed, Live: inTurn(o.Live)}
	if e.Budget == 0 {
		e.Budget = DefaultBudget
	}
	if e.Parallel == 0 {
		e.Parallel = DefaultParallel
	}
	if e.ControlPlane == "" {
		if e.ControlPlane, err = cluster.EnsureBinary(ctx, nil); err != nil {
			return nil, fmt.Errorf("finding the control plane: %w", err)
		}
	}
	if e.StateDir = o.StateDir; e.StateDir == "" {
		if e.StateDir, err = os.MkdirTemp("", "opdock-prove-"); err != nil {
			return nil, fmt.Errorf("creating a directory for the campaign: %w", err)
		}
		defer os.RemoveAll(e.StateDir)
	}
	if e.StateDir, err = filepath.Abs(e.StateDir); err != nil { // the build runs in another directory
		return nil, fmt.Errorf("creating a directory for the campaign: %w", err)
	}
	if err := os.MkdirAll(e.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory for the campaign: %w", err)
	}
	held, err := hold(e.StateDir)
	if err != nil {
		return nil, err
	}
	defer held.Close()
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	e.Operator = dev.OperatorOptions{
		Project: p, Main: main, Arguments: o.Arguments, Env: env, StateDir: e.StateDir, Say: say,
		Progress: func(text string) {
			if o.Progress != nil {
				o.Progress(Progress{Stage: "building", Text: text})
			}
		},
	}
	definitions, err := p.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	external := func() []*unstructured.Unstructured { return p.ExternalCRDs(ctx, env) }
	play, err := scenarioOf(ctx, p, &o, definitions, func(samples []*unstructured.Unstructured) []*unstructured.Unstructured {
		return servedSamples(samples, definitions, external, say)
	})
	if err != nil {
		return nil, err
	}
	setup, err := setupOf(&o, play)
	if err != nil {
		return nil, err
	}
	if again != nil && again.setup.isOther(&setup) {
		say("The scenario has changed since the campaign: the finding may be gone, or look different.")
	}
	stepsOf(&e, play, definitions, metav1.NamespaceDefault)
	e.Texts = textsOf(play)
	if only == nil && o.wantsUpgrade() {
		remove, err := earlier(ctx, p, &o, &e)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	result, err := engine.Run(ctx, e)
	if err != nil {
		return nil, err
	}
	result.Report.Campaign = result.Report.Began.UTC().Format("20060102T150405")
	return &Campaign{Report: result.Report, Plans: result.Plans, Digest: result.Digest, Setup: setup}, nil
}

// inTurn serializes the calls of a function.
func inTurn(tell func(Line)) func(Line) {
	if tell == nil {
		return nil
	}
	var mutex sync.Mutex
	return func(line Line) {
		mutex.Lock()
		defer mutex.Unlock()
		tell(line)
	}
}

// hold locks the state directory for this campaign, and removes the leftovers of a killed one.
func hold(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the state directory: %w", err)
	}
	if err := filelock.Exclusive(lock); err != nil {
		lock.Close()
		if errors.Is(err, filelock.ErrHeld) {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("locking the state directory: %w", err)
	}
	if err := removeLeftovers(dir); err != nil {
		lock.Close()
		return nil, fmt.Errorf("removing the files of an earlier campaign: %w", err)
	}
	return lock, nil
}

// ofCampaign matches the directories that a campaign creates and removes again. The number keeps directories that a user has put there.
var ofCampaign = regexp.MustCompile(`^(campaign|install|upgrade)-[0-9]+$`)

// removeLeftovers removes the directories of killed campaigns. Only the holder of the lock may call it: nothing but campaigns uses
// the state directory, so none of them is in use.
func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, one := range entries {
		if one.IsDir() && ofCampaign.MatchString(one.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, one.Name())))
		}
	}
	return err
}

// ErrRunning is returned while another campaign of the same project runs.
var ErrRunning = errors.New("another campaign of this project is running: wait until it ends")

// scenarioOf reads a scenario, or creates one from those of the project's samples that are served.
func scenarioOf(
	ctx context.Context, p *project.Project, o *Options, definitions []*unstructured.Unstructured, served func([]*unstructured.Unstructured) []*unstructured.Unstructured,
) (s *scenario.Scenario, err error) {
	switch {
	case o.Scenario != "" && len(o.Steps) > 0:
		return nil, errors.New("there are steps in code and a scenario file: give one of them")
	case o.Scenario != "":
		s, err = scenario.Load(o.Scenario)
	case len(o.Steps) > 0:
		s, err = o.inCode()
	default:
		samples, err := p.Samples(ctx)
		if err != nil {
			return nil, err
		}
		if samples = served(samples); len(samples) == 0 {
			return nil, ErrNoSamples
		}
		s = scenario.Default(samples, definitions)
	}
	if err != nil {
		return nil, err
	}
	for i := range o.Ignore {
		if err := o.Ignore[i].Check(); err != nil {
			return nil, fmt.Errorf("entry %d of Ignore: %w", i+1, err)
		}
	}
	s.Ignore = append(s.Ignore, o.Ignore...)
	s.Settle = Settle{Quiet: cmp.Or(o.Settle.Quiet, s.Settle.Quiet), Patience: cmp.Or(o.Settle.Patience, s.Settle.Patience), Bound: cmp.Or(o.Settle.Bound, s.Settle.Bound)}
	return s, nil
}

// ErrNoSamples is returned for a project without samples. [Suggest] creates a scenario for it.
var ErrNoSamples = errors.New("the project has no samples, so there is nothing to run")
