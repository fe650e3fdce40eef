// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/why"
)

// appServiceName is the name of the fleet's controller of AppServices.
const appServiceName = "appservice"

func fleetKinds() []controller.Kind {
	return slices.DeleteFunc(slices.Clone(controller.Kinds), func(kind controller.Kind) bool { return kind.Kind != "AppService" })
}

// recorded is a recorder whose records are read in steps.
type recorded struct {
	*why.Recorder

	mutex sync.Mutex
	// read is the ID of the last record that was read, by namespace.
	read map[string]uint64
}

// newRecorded returns a recorder that keeps all details of a change.
func newRecorded(scheme *runtime.Scheme) *recorded {
	const plenty = 1000
	return &recorded{read: map[string]uint64{}, Recorder: why.New(why.Options{
		MaxPerObject: plenty, MaxCauses: plenty, MaxWrites: plenty, MaxChanges: plenty, Scheme: scheme,
	})}
}

// last returns the ID of the newest record of a namespace.
func (r *recorded) last(namespace string) uint64 {
	records := r.Records(why.Query{Namespace: namespace, Limit: 1})
	if len(records) == 0 {
		return 0
	}
	return records[0].ID
}

// news returns the records of a namespace since the last call, by controller.
func (r *recorded) news(namespace string) map[string][]*why.Record {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	records := r.Records(why.Query{Namespace: namespace, After: r.read[namespace], Limit: 1000})
	byController := map[string][]*why.Record{}
	for _, record := range records {
		byController[record.Controller] = append(byController[record.Controller], record)
		r.read[namespace] = record.ID
	}
	return byController
}

// startControllers starts all controllers. The returned function stops them.
func (e *experiment) startControllers(ctx context.Context) (stop func() error, err error) {
	scheme := e.client.Scheme()
	e.naive, e.witness, e.fleet = newRecorded(scheme), newRecorded(scheme), newRecorded(scheme)
	naive, err := e.newManager(e.namespaces(e.naiveNamespace), e.naive.Recorder, setUpNaive)
	if err != nil {
		return nil, err
	}
	witness, err := e.newManager(e.namespaces(e.fleetNamespace), e.witness.Recorder, setUpWitness)
	if err != nil {
		return nil, err
	}
	// The fleet runs in all namespaces, as usual. With a list of namespaces, a reconcile may not see earlier writes.
	fleet, err := manager.New(e.config, manager.Options{Kinds: fleetKinds(), Logger: e.Logger, Why: e.fleet.Recorder})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error)
	all := []ctrl.Manager{naive, witness, fleet}
	for _, mgr := range all {
		go func() { ended <- mgr.Start(ctx) }()
	}
	return func() error {
		cancel()
		var errs []error
		for range all {
			errs = append(errs, <-ended)
		}
		return errors.Join(errs...)
	}, nil
}

// newManager returns a manager that watches only these namespaces.
func (e *experiment) newManager(namespaces []string, recorder *why.Recorder, setUp func(ctrl.Manager, *why.Recorder) error) (ctrl.Manager, error) {
	inNamespaces := map[string]cache.Config{}
	for _, namespace := range namespaces {
		inNamespaces[namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(e.config, ctrl.Options{
		Scheme:     e.client.Scheme(),
		Logger:     e.Logger,
		Cache:      cache.Options{DefaultNamespaces: inNamespaces},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("creating a manager: %w", err)
	}
	if err := setUp(mgr, recorder); err != nil {
		return nil, fmt.Errorf("adding controllers: %w", err)
	}
	return mgr, nil
}
