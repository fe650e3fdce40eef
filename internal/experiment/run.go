// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/controller"
)

// Options are the settings of the experiment.
type Options struct {
	// Changes are the changes to make. If it is empty, all are made.
	Changes []Change
	// Containers are the numbers of containers per pod to try.
	Containers []int
	// Runs is how often each change is made.
	Runs int
	// ReadyAfter is how long pods take to become ready.
	ReadyAfter time.Duration
	// Prefix is the prefix of the names of the namespaces to create.
	Prefix string
	// Progress is called after each measured change. Calls do not overlap.
	Progress func(Progress)
	Logger   logr.Logger
}

// Progress describes how far the experiment is.
type Progress struct {
	Done, Total int
	// Message describes the last step, and Elapsed is its duration.
	Message string
	Elapsed time.Duration
}

// Run makes all changes on a cluster, which should be otherwise idle. It does not delete its objects.
func Run(ctx context.Context, config *rest.Config, o Options) (*Result, error) {
	if len(o.Changes) == 0 {
		o.Changes = Changes()
	}
	e := &experiment{Options: o, config: config, total: 2 * len(o.Containers) * o.Runs * len(o.Changes)}
	result := &Result{Runs: o.Runs, ReadyAfter: o.ReadyAfter}
	var err error
	if result.Kubernetes, err = e.prepare(ctx); err != nil {
		return nil, err
	}
	stop, err := e.startControllers(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := e.measure(ctx)
	if err := errors.Join(err, stop()); err != nil {
		return nil, err
	}
	result.Rows = rows
	return result, nil
}

type experiment struct {
	Options
	config *rest.Config
	client client.Client
	// The recorders of the controllers, set by startControllers.
	naive, witness, fleet *recorded

	// burst is held while a scenario causes work in the cluster, so the scenarios disturb each other as little as
	// possible. They wait for rest at the same time.
	burst sync.Mutex

	mutex       sync.Mutex // guards the fields below, and serialises calls of Progress
	done, total int
}

// prepare installs the CRDs, creates the namespaces with their sidecar policies, and returns the version of the server.
func (e *experiment) prepare(ctx context.Context) (version string, err error) {
	kinds := fleetKinds()
	if err := controller.Install(ctx, e.config, kinds); err != nil {
		return "", err
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return "", err
	}
	if e.client, err = client.New(e.config, client.Options{Scheme: scheme}); err != nil {
		return "", fmt.Errorf("creating a client: %w", err)
	}
	server, err := discovery.NewDiscoveryClientForConfig(e.config)
	if err != nil {
		return "", fmt.Errorf("creating a client: %w", err)
	}
	info, err := server.ServerVersion()
	if err != nil {
		return "", fmt.Errorf("reading the version of the server: %w", err)
	}
	for _, containers := range e.Containers {
		for _, namespace := range []string{e.naiveNamespace(containers), e.fleetNamespace(containers)} {
			if err := e.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
				return "", fmt.Errorf("creating namespace %s: %w", namespace, err)
			}
		}
		if err := addSidecars(ctx, e.client, e.fleetNamespace(containers), containers); err != nil {
			return "", err
		}
	}
	return info.GitVersion, nil
}

func (e *experiment) naiveNamespace(containers int) string {
	return fmt.Sprintf("%snaive-%d", e.Prefix, containers)
}

func (e *experiment) fleetNamespace(containers int) string {
	return fmt.Sprintf("%sappservice-%d", e.Prefix, containers)
}

func (e *experiment) namespaces(of func(containers int) string) (names []string) {
	for _, containers := range e.Containers {
		names = append(names, of(containers))
	}
	return names
}

// behaviour returns the value of behaviourAnnotation for the pods.
func (e *experiment) behaviour() string {
	if e.ReadyAfter == 0 {
		return ""
	}
	return "ready-after=" + e.ReadyAfter.String()
}

// measure runs all scenarios concurrently, and builds rows from their observations.
func (e *experiment) measure(ctx context.Context) ([]Row, error) {
	naive, fleet := make([]*scenario, len(e.Containers)), make([]*scenario, len(e.Containers))
	group, ctx := errgroup.WithContext(ctx)
	for i, containers := range e.Containers {
		naive[i], fleet[i] = e.naiveScenario(containers), e.fleetScenario(containers)
		group.Go(func() error { return naive[i].run(ctx) })
		group.Go(func() error { return fleet[i].run(ctx) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var rows []Row
	for i, containers := range e.Containers {
		for j, change := range e.Changes {
			row := Row{Change: change.Name, Title: change.Title, Containers: containers, Counted: Counted(change.Name, containers)}
			for _, watching := range Watchings {
				row.Naive = append(row.Naive, newMeasured(watching.Name, naive[i].seen[j][watching.Name]))
			}
			row.AppService = newMeasured(appServiceName, fleet[i].seen[j][appServiceName])
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func (e *experiment) report(message string, began time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.done++
	if e.Progress != nil {
		e.Progress(Progress{Done: e.done, Total: e.total, Message: message, Elapsed: time.Since(began)})
	}
}
