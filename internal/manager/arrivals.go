// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opdock/opdock/internal/controller"
)

// arrivals starts the controller of each kind as soon as the cluster serves the kind. A controller that is started before
// that would fail, and take the manager and all other controllers with it.
type arrivals struct {
	manager ctrl.Manager
	log     logr.Logger
	setup   setup
	client  metadata.Interface
	// namespace is one that the manager may read; empty if it may read all.
	namespace string
	// kinds are all those that the manager knows, started or not.
	kinds []controller.Kind

	wake chan struct{}
	// parts are what the started kinds consist of: controllers and caches. They are not added to the manager, because a manager
	// that stops while something is added to it may wait until its grace period is over.
	parts *errgroup.Group

	mutex   sync.Mutex
	pending []*expected
	started []controller.Kind
	// looked is whether the server has been asked for every kind at least once.
	looked bool
}

// setup adds the controller of a kind to the manager.
type setup func(context.Context, ctrl.Manager, controller.Kind) error

// expected is something to do when a kind is served.
type expected struct {
	kind schema.GroupVersionKind
	then func(context.Context) error
}

func newArrivals(mgr ctrl.Manager, o Options, setup setup) (*arrivals, error) {
	client, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the client that looks for kinds: %w", err)
	}
	a := &arrivals{
		manager: mgr, log: mgr.GetLogger().WithName("arrivals"), setup: setup, client: client, kinds: o.Kinds, wake: make(chan struct{}, 1),
	}
	if len(o.Namespaces) > 0 {
		a.namespace = o.Namespaces[0]
	}
	for _, kind := range o.Kinds {
		a.expect(kind.GroupVersionKind, func(ctx context.Context) error { return a.start(ctx, kind) })
	}
	return a, nil
}

// whenInstalled calls a function once, as soon as the kind is served; that may be at once. If the function fails, the
// manager ends.
func (a *arrivals) whenInstalled(kind schema.GroupVersionKind, then func() error) {
	a.expect(kind, func(context.Context) error { return then() })
}

func (a *arrivals) expect(kind schema.GroupVersionKind, then func(context.Context) error) {
	a.mutex.Lock()
	a.pending = append(a.pending, &expected{kind, then})
	a.mutex.Unlock()
	a.wakeUp()
}

func (a *arrivals) wakeUp() {
	select {
	case a.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

func (a *arrivals) start(ctx context.Context, kind controller.Kind) error {
	staged := &stagedManager{Manager: a.manager}
	if err := a.setup(ctx, staged, kind); err != nil {
		return fmt.Errorf("setting up %s: %w", kind.Kind, err)
	}
	for _, part := range staged.runnables {
		a.parts.Go(func() error { return part.Start(ctx) })
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.started = append(a.started, kind)
	return nil
}

// running are the kinds whose controllers have been started.
func (a *arrivals) running() []controller.Kind {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.started)
}

// NeedLeaderElection makes a manager that is not the leader wait.
func (a *arrivals) NeedLeaderElection() bool { return true }

// lookAgain retries a kind whose CRD was just reported: it is served a moment later, without an event. If that takes
// longer than these attempts, the next event of the CRD starts them again.
var lookAgain = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 10, Cap: 10 * time.Second}

// Start implements manager.Runnable. It returns when the manager stops and everything that was started has ended.
func (a *arrivals) Start(ctx context.Context) error {
	var running context.Context
	a.parts, running = errgroup.WithContext(ctx)
	a.parts.Go(func() error { return a.startServed(running) })
	return a.parts.Wait()
}

// startServed starts each kind as soon as it is served, until the manager stops.
func (a *arrivals) startServed(ctx context.Context) error {
	var (
		attempts     wait.Backoff
		stopWatching context.CancelFunc
	)
	told := map[schema.GroupVersionKind]bool{}
	for {
		missing, certain, err := a.look(ctx)
		if err != nil {
			return err
		}
		a.tell(missing, told)
		switch {
		case len(missing) > 0 && stopWatching == nil:
			stopWatching = a.watchCRDs(ctx)
			defer stopWatching()
		case len(missing) == 0 && stopWatching != nil:
			stopWatching()
			stopWatching = nil
		}
		var again <-chan time.Time
		switch {
		case !certain:
			again = time.After(lookAgain.Cap)
		case len(missing) > 0 && attempts.Steps > 0:
			again = time.After(attempts.Step())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.wake:
			attempts = lookAgain
		case <-again:
		}
	}
}

// look sets up the kinds that are served, and returns the others. The result is uncertain if the server did not
// respond.
func (a *arrivals) look(ctx context.Context) (missing []schema.GroupVersionKind, certain bool, err error) {
	a.mutex.Lock()
	pending := slices.Clone(a.pending)
	a.mutex.Unlock()
	certain = true
	for _, expected := range pending {
		served, err := a.served(ctx, expected.kind)
		switch {
		case err != nil:
			a.log.Error(err, "Cannot find out whether a kind is installed; retrying", "kind", expected.kind.Kind)
			certain = false
		case !served:
			missing = append(missing, expected.kind)
		default:
			if err := expected.then(ctx); err != nil {
				return nil, false, err
			}
			a.done(expected)
		}
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.looked = a.looked || certain
	return missing, certain, nil
}

func (a *arrivals) done(what *expected) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.pending = slices.DeleteFunc(a.pending, func(pending *expected) bool { return pending == what })
}

// awaits reports whether something is to be done when a kind of that group is served.
func (a *arrivals) awaits(group string) bool {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.ContainsFunc(a.pending, func(pending *expected) bool { return pending.kind.Group == group })
}

// served asks the server whether objects of the kind can be read. A CRD is there before its kind is, and discovery goes
// on to name a kind for a moment after it is gone. A watch that is started then never syncs, and all controllers that
// start at the same time wait for it.
func (a *arrivals) served(ctx context.Context, kind schema.GroupVersionKind) (bool, error) {
	mapping, err := a.manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = a.client.Resource(mapping.Resource).Namespace(a.namespace).List(ctx, metav1.ListOptions{Limit: 1})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err):
		return true, nil // the controller reports what it is not allowed to do
	default:
		return err == nil, err
	}
}

// tell logs once for each kind that it is missing, and once that it is installed.
func (a *arrivals) tell(missing []schema.GroupVersionKind, told map[schema.GroupVersionKind]bool) {
	for _, kind := range missing {
		if !told[kind] {
			told[kind] = true
			a.log.Info("This kind is not installed. Its controller starts when you install it: apply config/crd or the installer",
				"kind", kind.Kind, "crd", a.crd(kind))
		}
	}
	for kind := range told {
		if !slices.Contains(missing, kind) {
			delete(told, kind)
			a.log.Info("This kind is now installed", "kind", kind.Kind)
		}
	}
}

// crd is the name of the kind's CustomResourceDefinition, if it is one of ours.
func (a *arrivals) crd(kind schema.GroupVersionKind) string {
	for _, known := range a.kinds {
		if known.GroupVersionKind == kind {
			return known.CRD()
		}
	}
	return kind.Group
}
