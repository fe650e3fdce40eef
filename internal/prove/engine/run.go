// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/dev"
	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/report"
	"github.com/opdock/opdock/internal/prove/world"
)

// run is an operator on its own cluster.
type run struct {
	campaign *campaign
	family   string // of the disturbance; empty if there is none
	setting  setting
	// takesBack means that the plan changes the scenario and changes it back.
	takesBack bool
	dir       string
	began     time.Time
	cluster   *cluster.Cluster
	objects   client.Client // an administrator's
	world     *world.World
	lens      *lens.Lens
	board     *switchboard
	activity  *activity
	follows   sync.WaitGroup

	// operator is nil while there is none. The mutex is for faults, which kill it.
	mutex    sync.Mutex
	operator *dev.Started
	killed   bool // on purpose
	reviving atomic.Bool

	notes []report.Line // what was done to the cluster and to the operator; the mutex is for it as well
	exits []string      // how it ended without being asked to
	log   panicLog

	markedPanic bool            // a marked reconcile has panicked
	culprits    map[uint64]bool // the requests that are wrong, which a story shows; the mutex is for them as well

	changed *made // what became of the change of the plan

	recording *lens.Recording
	keep      string            // where the recording goes when the run has ended
	told      func(report.Line) // receives events; may be nil
}

// note records an action, for the story.
func (r *run) note(text string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	line := report.Line{At: time.Since(r.began), Text: text, Fault: true}
	r.notes = append(r.notes, line)
	if r.told != nil {
		r.told(line)
	}
}

// startTimeout is how long a cluster and an operator may take to start.
const startTimeout = 2 * time.Minute

// newRun starts a cluster as it was at a checkpoint, with an operator unless that is to be started later.
func (c *campaign) newRun(ctx context.Context, from string, withOperator bool) (r *run, err error) {
	r = &run{campaign: c, began: time.Now(), board: newSwitchboard(c.named), activity: newActivity()}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	r.activity.elections, r.activity.marks = c.elections, &c.marks
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not started within %s", startTimeout))
	defer cancel()
	if r.dir, err = os.MkdirTemp(c.o.StateDir, "run-"); err != nil {
		return r, fmt.Errorf("creating a directory for a run: %w", err)
	}
	if r.cluster, err = cluster.Start(ctx, cluster.Options{From: from, Binary: c.o.ControlPlane}); err != nil {
		return r, fmt.Errorf("starting a cluster for a run: %w", err)
	}
	admin := unlimited(r.cluster.Config())
	if r.objects, err = client.New(r.withOperator(admin), client.Options{}); err != nil {
		return r, fmt.Errorf("connecting to the cluster: %w", err)
	}
	if c.installs {
		if err := c.operator.Install(ctx, admin); err != nil {
			return r, err
		}
	}
	if !c.watchLate {
		if r.world, err = world.Watch(ctx, admin, c.saved.of(from)); err != nil {
			return r, err
		}
	}
	upstream, user, namespace := admin, "", "default"
	if identity := c.operator.Identity(); identity != nil {
		user, namespace = identity.User(), identity.Namespace
		as, err := r.cluster.As(user)
		if err != nil {
			return r, fmt.Errorf("giving the operator its identity: %w", err)
		}
		upstream = unlimited(as.Config())
	}
	if r.lens, err = lens.Start(context.WithoutCancel(ctx), lens.Options{Upstream: upstream, User: user, Namespace: namespace, Faults: r.board}); err != nil {
		return r, err
	}
	r.follows.Go(func() { r.activity.follow(r.lens.Stream()) })
	if withOperator {
		err = r.startOperator(ctx)
	}
	if withOperator && err == nil && c.mayMove && len(c.reference) == 0 {
		if watched := r.operator.Watches(); c.isElsewhere(watched) {
			err = &elsewhereError{watched}
		}
	}
	if c.watchLate && err == nil {
		r.world, err = world.Watch(ctx, admin, c.saved.of(from))
	}
	return r, err
}

func unlimited(config *rest.Config) *rest.Config {
	config.QPS = -1
	return config
}

// startOperator starts the operator, for the first time or again.
func (r *run) startOperator(ctx context.Context) error {
	if err := r.campaign.elections.resign(ctx, r.objects); err != nil {
		return err
	}
	r.mutex.Lock()
	again := r.operator
	r.mutex.Unlock()
	if again != nil {
		err := again.Again(ctx, r.log.line)
		r.mutex.Lock()
		r.killed = false
		r.mutex.Unlock()
		return err
	}
	started, err := r.campaign.operator.Start(ctx, dev.Place{Dir: r.dir, Admin: r.cluster.Config(), Lens: r.lens, Line: r.log.line})
	if err != nil {
		return err
	}
	r.mutex.Lock()
	r.operator = started
	r.mutex.Unlock()
	return nil
}

// kill ends the operator as a crash would. It may be called from a fault.
func (r *run) kill() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.operator == nil || r.killed {
		return
	}
	r.killed = true
	r.operator.Kill()
}

// ended is closed when the operator has ended; nil if there is none.
func (r *run) ended() (done <-chan struct{}, killed bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.operator == nil {
		return nil, false
	}
	return r.operator.Done(), r.killed
}

// revive restarts an operator that has ended, and records whether it exited by itself.
func (r *run) revive(ctx context.Context) error {
	_, killed := r.ended()
	if !killed {
		r.exits = append(r.exits, r.operator.How()+": "+lastLine(r.operator.Tail()))
		if len(r.exits) > mostExits {
			return &deadError{how: r.operator.How(), tail: r.operator.Tail()}
		}
	}
	err := r.startOperator(ctx)
	var ended *dev.EndedError
	if errors.As(err, &ended) {
		return nil // it is seen again
	}
	return err
}

// mostExits is after how many ends an operator is not started again.
const mostExits = 3

// deadError is an operator that ends whenever it is started.
type deadError struct {
	how  string
	tail []string
}

func (e *deadError) Error() string {
	return "the operator does not stay up; it " + e.how + ":\n  " + strings.Join(e.tail, "\n  ")
}

func lastLine(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "panic:") {
			return lines[i]
		}
	}
	if len(lines) == 0 {
		return "it printed nothing"
	}
	return lines[len(lines)-1]
}

// close ends everything that belongs to the run.
func (r *run) close() error {
	var failed []error
	r.board.calm()
	r.kill()
	if r.lens != nil {
		failed = append(failed, r.lens.Close())
		r.follows.Wait()
	}
	failed = append(failed, r.endRecording())
	if r.world != nil {
		failed = append(failed, r.world.Close())
	}
	if r.cluster != nil {
		failed = append(failed, r.cluster.Stop())
	}
	if r.dir != "" {
		failed = append(failed, os.RemoveAll(r.dir))
	}
	return errors.Join(failed...)
}

// events returns the kept events of the lens after a number.
func (r *run) events(since uint64) (events []*lens.Event) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	last := r.lens.Stream().Last()
	if last <= since {
		return nil
	}
	for event := range r.lens.Stream().Follow(ctx, since) {
		copied := *event
		events = append(events, &copied)
		if event.Seq >= last {
			break
		}
	}
	return events
}
