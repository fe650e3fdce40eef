// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/dev/mounts"
	"github.com/opdock/opdock/internal/instrument"
	"github.com/opdock/opdock/internal/project"
)

// ErrClusterEnded ends a session whose cluster has stopped.
var ErrClusterEnded = errors.New("the cluster has stopped")

// errEnded means that the operator has ended during a wait.
var errEnded = errors.New("the operator has exited")

// Session is one run of opdock dev.
type Session struct {
	Options

	builder      *builder
	applier      *applier
	certificates *certificates
	log          *logFile
	lens         *lensing // nil without

	mu    sync.Mutex // held while files are generated, so they do not count as changes
	files *files

	// These belong to the round that runs, or to the loop if none does.
	ports      ports
	plan       plan
	called     usage
	manifests  manifests
	process    *process
	debugger   *debugger                    // attached to that process; nil without one
	advice     *advice                      // about the log of that process
	configured []*unstructured.Unstructured // the webhook configurations on the cluster
	cleared    bool                         // configurations of an earlier session were deleted
	unserved   *unserved                    // the last operator that did not serve them
	acts       string                       // the identity that was printed last
	external   []*unstructured.Unstructured // CRDs of other modules' kinds
	// lookedForExternal is true once external is complete.
	lookedForExternal bool
	granted           atomic.Pointer[project.Identity]             // the rights that the manifests give; read while the operator logs
	unbound           atomic.Pointer[[]*unstructured.Unstructured] // the roles that no binding refers to; read while the operator logs
	standIn           *unstructured.Unstructured                   // the Pod in place of the operator's own; nil if it needs none
	mountable         *mounts.List                                 // the mounts that the operator last had
	namespaces        map[string]bool                              // namespaces that are known to exist
	toldOnce          map[string]bool                              // messages that were printed and are not repeated
	sought            map[project.Wanted]bool                      // missing kinds whose CRDs were searched
	unfound           map[project.Wanted]bool                      // those without a CRD that were not shown yet
	inCluster         *inCluster                                   // the operator's in-cluster configuration; nil without one

	// These belong to the loop.
	sampled  bool // the user requested samples
	pending  work
	leftover work // the remaining work of a failed round
	changed  []string
	reason   string
	noticed  time.Time
	written  []Step // what canceled rounds have generated
	round    *runningRound
	tests    *testRun // nil if none runs
	seen     *process // the last process whose end was reported
	crashes  int
	retry    *time.Timer
}

// runningRound is a round in progress.
type runningRound struct {
	cancel   context.CancelFunc
	finished chan outcome
}

// outcome is how a round went.
type outcome struct {
	round     Round
	remaining work
	cancelled bool
	crashed   bool
}

const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// stable is how long an operator must run before the count of consecutive crashes is reset.
	stable = 30 * time.Second
)

// New prepares a session. The log file is locked: two sessions with one state folder would restart each other's operator.
func New(o Options) (*Session, error) {
	s := &Session{Options: o, sampled: o.Samples, files: newFiles(o.Project.Dir), unserved: &unserved{}}
	s.builder = &builder{
		dir: o.Project.Dir, module: o.Project.Module, main: o.Main, output: filepath.Join(o.StateDir, "bin", o.Project.Name),
		env: o.Env, BuildOptions: o.Build, progress: o.Screen.Busy,
	}
	if o.Lens {
		s.builder.say = func(text string) { s.Screen.Say(text) }
		s.builder.instrument = &instrument.Project{Dir: o.Project.Dir, Env: o.Env, StateDir: o.StateDir}
	}
	var err error
	set := apply.Set{Project: o.Project.Name, Verb: apply.VerbDev, Namespace: apply.InventoryNamespace(o.Cluster.CallsBack, o.Namespace)}
	if s.applier, err = newApplier(o.Cluster.Config, set); err != nil {
		return nil, err
	}
	s.applier.options.Namespace, s.applier.options.MakeNamespaces = metav1.NamespaceDefault, o.Cluster.CallsBack
	s.applier.options.Note = s.applier.once(o.Screen.Say)
	if err := s.ports.renew(); err != nil {
		return nil, err
	}
	if s.log, err = o.Claim.newLog(); err != nil {
		return nil, err
	}
	if s.certificates, err = makeCertificates(o.StateDir, time.Now()); err != nil {
		return nil, err
	}
	return s, nil
}

// LogPath is where the operator's log is kept.
func (s *Session) LogPath() string { return logPath(s.StateDir) }

// KubeconfigPath is the operator's kubeconfig.
func (s *Session) KubeconfigPath() string { return filepath.Join(s.StateDir, "kubeconfig") }

// homePath is the operator's home directory.
func (s *Session) homePath() string { return filepath.Join(s.StateDir, "home") }

// Run runs until the context ends, the user quits or the cluster stops. When it returns, the operator has
// ended.
func (s *Session) Run(ctx context.Context) error {
	if s.Observer == nil {
		s.Observer = unobserved{}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	roots, err := localModules(ctx, s.Project.Dir, s.Env)
	if err != nil {
		return err
	}
	// Watch before reading, so nothing is missed in between.
	watcher, err := watch(ctx, roots)
	if err != nil {
		return err
	}
	if err := s.files.learn(roots); err != nil {
		return err
	}
	defer s.end()
	if err := s.applier.hold(ctx, apply.SessionHere()); err != nil {
		return err
	}
	s.add(workAll, nil, "started")
	if s.sampled {
		s.pending |= workSamples
	}
	s.retry = time.NewTimer(time.Hour)
	s.retry.Stop()
	defer s.retry.Stop()
	return s.loop(ctx, watcher)
}

func (s *Session) loop(ctx context.Context, watcher *watcher) error {
	for {
		if s.round == nil && s.pending != 0 {
			s.begin(ctx)
		}
		var finished chan outcome
		var ended, lacks chan struct{}
		var tested chan string
		if s.tests != nil {
			tested = s.tests.finished
		}
		if s.round != nil {
			finished = s.round.finished
		} else if s.process != nil && s.process != s.seen {
			ended, lacks = s.process.done, s.process.ready.lacks
		}
		select {
		case <-ctx.Done():
			s.abandon()
			return nil
		case <-s.Cluster.Done:
			s.abandon()
			return ErrClusterEnded
		case err := <-watcher.failed:
			s.Screen.Say("some files are not watched: " + err.Error())
		case paths := <-watcher.changed:
			s.notice(paths)
		case result := <-finished:
			s.round = nil
			s.conclude(result)
		case text := <-tested:
			s.tests = nil
			s.Screen.Say(text)
		case <-ended:
			s.crash(Round{Began: time.Now(), Reason: "the operator " + s.process.how(), Steps: []Step{}})
		case <-lacks:
			if s.lacksNews() {
				s.add(workAwait, nil, "the operator needs another kind")
			}
		case <-s.retry.C:
			s.add(workRestart|s.leftover, nil, "again")
			s.leftover = 0
		case input := <-s.Keys:
			if s.press(ctx, input) {
				s.abandon()
				return nil
			}
		}
	}
}

// notice finds out what files that may have changed mean.
func (s *Session) notice(paths []string) {
	s.mu.Lock()
	changes := s.files.compare(paths)
	s.mu.Unlock()
	if len(changes) == 0 {
		return
	}
	folders := s.Project.Folders() // which may have changed as well
	in := layout{main: path.Clean(s.Main), samples: folders.Samples, manifests: folders.Manifests}
	var names []string
	var todo work
	for _, one := range changes {
		needed := in.classify(one)
		if !s.sampled {
			needed &^= workSamples
		}
		if needed != 0 {
			todo |= needed
			names = append(names, one.path)
		}
	}
	if todo == 0 {
		return
	}
	s.crashes = 0
	s.retry.Stop()
	if s.round == nil && s.process.crashed() {
		todo |= workRestart
	}
	s.add(todo|s.leftover, names, "")
	s.leftover = 0
	if s.round != nil && todo != workSamples {
		s.round.cancel()
	}
}

func (s *Session) add(todo work, changed []string, reason string) {
	if s.pending == 0 || s.noticed.IsZero() {
		s.noticed = time.Now()
	}
	s.pending |= todo
	for _, name := range changed {
		if !slices.Contains(s.changed, name) {
			s.changed = append(s.changed, name)
		}
	}
	if reason != "" {
		s.reason = reason
	}
}

// begin starts a round with everything that is to be done.
func (s *Session) begin(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	s.round = &runningRound{cancel: cancel, finished: make(chan outcome, 1)}
	round := Round{Began: s.noticed, Changed: s.changed, Reason: s.reason, Steps: append([]Step{}, s.written...)}
	todo, finished := s.pending, s.round.finished
	s.pending, s.changed, s.reason, s.noticed, s.written = 0, nil, "", time.Time{}, nil
	go func() {
		defer cancel()
		finished <- s.do(ctx, todo, round)
	}()
}

// conclude shows a round that has ended, or passes its remaining work to the next round.
func (s *Session) conclude(result outcome) {
	if result.cancelled && result.remaining != 0 {
		// The round that takes its place does the rest, and its status line names what began it first.
		changed := s.changed
		s.pending |= result.remaining
		s.changed, s.noticed, s.written = nil, result.round.Began, result.round.written()
		s.add(0, append(result.round.Changed, changed...), "")
		if s.reason == "" {
			s.reason = result.round.Reason
		}
		return
	}
	s.Screen.Busy("")
	s.leftover |= result.remaining
	defer s.advice.roundIsOver()
	if result.crashed {
		s.crash(result.round)
		return
	}
	s.Screen.Round(result.round)
}

// crash reports that the operator has exited, and restarts it with back-off.
func (s *Session) crash(round Round) {
	s.seen = s.process
	s.Observer.End()
	wasStable := time.Since(s.process.began) > stable
	if wasStable {
		s.crashes = 0
	}
	delay := min(firstRetry<<min(s.crashes, 10), lastRetry)
	s.crashes++
	s.retry.Reset(delay)
	lines := s.process.tail()
	problem := &Problem{Step: StepRun, Text: fmt.Sprintf("restarting in %s, or when a file changes", Duration(delay)), Lines: lines}
	if taken := portInLog(lines); taken != nil {
		problem.Hint = taken.Error()
	} else if kinds := s.process.ready.missing(); len(kinds) > 0 {
		problem.Hint = (&LackingError{kinds}).Error() + "; " + cmp.Or(s.aboutOtherVersion(kinds...), "apply its CRD")
	} else if hint := exitHint(lines, s.surrounding()); hint != "" && !wasStable {
		problem.Hint = hint
	} else if s.process.exit == nil {
		problem.Hint = s.called.hint()
	}
	if round.Problem == nil {
		round.Problem = problem
	}
	s.Screen.Round(round)
}

// abandon ends the round and the tests that run.
func (s *Session) abandon() {
	s.endTests()
	if s.round != nil {
		s.round.cancel()
		result := <-s.round.finished
		s.round = nil
		for _, one := range result.round.written() {
			s.Screen.Say(one.Text)
		}
	}
	s.Screen.Busy("")
}

// end stops the operator, and takes back what would be in the way without it.
func (s *Session) end() {
	s.debugger.stop()
	if s.process.running() {
		s.process.stop(stopGrace)
	}
	if err := s.lens.close(); err != nil {
		s.Screen.Say(err.Error())
	}
	s.Observer.End()
	var leftover []*unstructured.Unstructured
	if s.standIn != nil {
		leftover = append(leftover, s.standIn)
	}
	select {
	case <-s.Cluster.Done:
		return
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopGrace)
	defer cancel()
	// No process serves their webhooks now, and the API server would refuse requests because of them.
	if err := errors.Join(s.applier.removePart(ctx, s.configured), s.applier.remove(ctx, leftover), s.applier.hold(ctx, "")); err != nil {
		s.Screen.Say(err.Error())
	}
}
