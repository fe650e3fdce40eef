// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager puts the kinds of the fleet into one controller-runtime manager. The manager program, `opdock run` and
// the tests all use it.
package manager

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/why"
)

// Options are the settings of the manager. The zero value is good for tests: no ports, no leader election.
type Options struct {
	// Kinds to run; all if empty.
	Kinds []controller.Kind
	// Namespaces to watch; all if empty.
	Namespaces []string
	// Concurrency is how many objects a controller reconciles concurrently, by kind; 0 and missing ones get the
	// default.
	Concurrency map[string]int
	// ReconcileTimeout bounds a single pass.
	ReconcileTimeout time.Duration
	// Metrics is where and how metrics are served; not at all by default.
	Metrics metricsserver.Options
	// HealthProbeAddress is where health is served; not at all if empty.
	HealthProbeAddress string
	// ProfileAddress is where profiles of the process are served, without protection; not at all if empty.
	ProfileAddress string
	// LeaderElection allows only one of several managers to be active at a time.
	LeaderElection          bool
	LeaderElectionNamespace string
	// GracefulShutdown is how long passes may take to end when the manager stops.
	GracefulShutdown time.Duration
	Logger           logr.Logger
	// Why records why objects are reconciled; nothing is recorded if it is nil.
	Why *why.Recorder
}

const (
	// LeaderElectionID is the name of the lease.
	LeaderElectionID = "opdock-manager.opdock.dev"

	// DefaultConcurrency is how many objects of a kind are reconciled concurrently by default.
	DefaultConcurrency = 8

	defaultReconcileTimeout = time.Minute
	defaultGracefulShutdown = 20 * time.Second
	// cacheSyncTimeout bounds the wait for the first list of what a controller watches.
	cacheSyncTimeout = 2 * time.Minute
)

// New returns a manager that runs the fleet once it is started. A kind whose CRD is missing joins when it appears.
func New(restConfig *rest.Config, o Options) (ctrl.Manager, error) {
	if len(o.Kinds) == 0 {
		o.Kinds = controller.Kinds
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, fmt.Errorf("creating the scheme: %w", err)
	}
	restConfig = rest.CopyConfig(restConfig)
	// The API server's priority and fairness is what limits requests; a second limit here would only make a large
	// fleet slow. The number of workers bounds how many requests there are at a time.
	restConfig.QPS = -1
	restConfig.UserAgent = "opdock-manager"
	grace := orDefault(o.GracefulShutdown, defaultGracefulShutdown)
	paced := newPacedEvents(o.Logger, grace)
	restConfig.Wrap(paced.wrap)
	if o.Metrics.BindAddress == "" {
		o.Metrics.BindAddress = "0"
	}
	if o.HealthProbeAddress == "" {
		o.HealthProbeAddress = "0"
	}
	mgr, err := ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme,
		Logger: o.Logger,
		Cache:  cacheOptions(o),
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			c, err := o.Why.NewClient(config, options)
			return &catchingUp{Client: c, timeout: catchUpTimeout}, err
		},
		Client: client.Options{Cache: &client.CacheOptions{
			// A pass sees what the pass before it wrote. controller-runtime cannot do that for a list of namespaces;
			// there, events put right what a pass has not seen.
			EnableReadYourWritesConsistency: ptr.To(len(o.Namespaces) <= 1),
		}},
		Metrics:                 o.Metrics,
		HealthProbeBindAddress:  o.HealthProbeAddress,
		PprofBindAddress:        o.ProfileAddress,
		LeaderElection:          o.LeaderElection,
		LeaderElectionID:        LeaderElectionID,
		LeaderElectionNamespace: o.LeaderElectionNamespace,
		// Nothing is written after the manager has stopped, so the next leader need not wait for the lease to expire.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(grace),
		Controller: config.Controller{
			// Several managers may live in one process, in tests above all.
			SkipNameValidation: ptr.To(true),
			CacheSyncTimeout:   cacheSyncTimeout,
			UsePriorityQueue:   ptr.To(true),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	if paced.next, err = newEventSink(mgr); err != nil {
		return nil, err
	}
	recorders := &recorders{sink: paced, scheme: scheme, log: o.Logger}
	var arriving *arrivals
	arriving, err = newArrivals(mgr, o, func(ctx context.Context, mgr ctrl.Manager, kind controller.Kind) error {
		return kind.Setup(mgr, flow.Options{
			Concurrency:      orDefault(o.Concurrency[strings.ToLower(kind.Kind)], DefaultConcurrency),
			ReconcileTimeout: orDefault(o.ReconcileTimeout, defaultReconcileTimeout),
			Namespaces:       o.Namespaces,
			IsInstalled:      func(kind schema.GroupVersionKind) (bool, error) { return arriving.served(ctx, kind) },
			WhenInstalled:    arriving.whenInstalled,
			Recorder:         recorders.named,
			Why:              o.Why,
		})
	})
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(arriving); err != nil {
		return nil, fmt.Errorf("adding the kinds: %w", err)
	}
	if err := mgr.Add(paced); err != nil {
		return nil, fmt.Errorf("adding the pace of events: %w", err)
	}
	if o.Metrics.BindAddress != "0" {
		if err := mgr.Add(&objects{arriving: arriving, cache: mgr.GetCache()}); err != nil {
			return nil, fmt.Errorf("adding the number of objects: %w", err)
		}
	}
	if err := addChecks(mgr, arriving, o.LeaderElection); err != nil {
		return nil, err
	}
	return &recordingManager{mgr, recorders}, nil
}

// cacheOptions keep the caches small: only children of the fleet, and no fields that are not read.
func cacheOptions(o Options) cache.Options {
	ours := labels.SelectorFromSet(labels.Set{flow.LabelManagedBy: flow.ManagedBy})
	transform, ofPods := keepOwnFields, keepHealth
	if o.Why != nil {
		transform = why.KeepWriters(isNeeded)
		ofPods = transform
	}
	options := cache.Options{
		DefaultTransform:         transform,
		DefaultWatchErrorHandler: (&watchErrors{log: o.Logger, gone: map[string]bool{}}).handle,
		// Whether or not one of these kinds creates pods, Collectors find the pods of the fleet here.
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Label: ours, Transform: slimPods(transform, ofPods)}},
	}
	if len(o.Namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range o.Namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	added := map[string]bool{fmt.Sprintf("%T", &corev1.Pod{}): true}
	for _, kind := range o.Kinds {
		for _, child := range kind.Children {
			if name := fmt.Sprintf("%T", child); !added[name] {
				added[name] = true
				options.ByObject[child] = cache.ByObject{Label: ours, Transform: transform}
			}
		}
	}
	return options
}

// keepOwnFields drops the managed fields that a pass does not need to know whether a child is as it should be: of other
// managers, it keeps what they set outside of metadata and status, and only on objects that have a controller.
func keepOwnFields(object any) (any, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil //nolint:nilerr // a tombstone, which has nothing to drop
	}
	isChild := metav1.GetControllerOfNoCopy(accessor) != nil
	var kept []metav1.ManagedFieldsEntry
	for _, entry := range accessor.GetManagedFields() {
		if isOwn(entry) || isChild && flow.ConcernsSpec(entry) {
			kept = append(kept, entry)
		}
	}
	accessor.SetManagedFields(kept)
	return object, nil
}

// isNeeded reports whether an entry is about what a controller of the fleet has applied or created, or about what another
// manager has set that may have to be put right.
func isNeeded(entry metav1.ManagedFieldsEntry) bool { return isOwn(entry) || flow.ConcernsSpec(entry) }

func isOwn(entry metav1.ManagedFieldsEntry) bool {
	return entry.Subresource == "" && strings.HasPrefix(entry.Manager, "opdock-")
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
