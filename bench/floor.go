// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/manager"
)

// createWithoutManager makes only the requests that no manager can avoid. For each AppService, it creates the
// children, and writes the status once, when the Deployment is available. It uses as many workers as the manager and
// a client with the same settings. It returns the time until all AppServices are ready.
func createWithoutManager(ctx context.Context, c client.WithWatch, a application, size int, name func(int) string) (time.Duration, error) {
	// Prepare everything that is not a request before the clock starts.
	all := make(map[string]written, size)
	for i := range size {
		one, err := a.as(name(i))
		if err != nil {
			return 0, err
		}
		all[name(i)] = one
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers, workerContext := errgroup.WithContext(ctx)
	// The channel holds all work, so sending to it never blocks.
	work := make(chan func(context.Context) error, 2*size)
	finished := make(chan struct{})
	for range manager.DefaultConcurrency {
		workers.Go(func() error { return doAll(workerContext, work, finished) })
	}
	watching := make(chan error, 1)
	go func() {
		watching <- awaitAll(workerContext, c, metav1.NamespaceDefault, &appsv1.DeploymentList{}, size, func(object runtime.Object) bool {
			one, known := all[object.(client.Object).GetName()]
			if !known || !isAvailable(object) {
				return false
			}
			work <- func(ctx context.Context) error { return one.writeReady(ctx, c) }
			return true
		})
	}()
	took, err := createAndAwait(workerContext, c, metav1.NamespaceDefault, size, &appv1.AppServiceList{},
		func(i int) client.Object { return all[name(i)].app },
		func(object client.Object) {
			one := all[object.GetName()]
			work <- func(ctx context.Context) error { return createChildren(ctx, c, one) }
		}, isReady)
	if err != nil {
		cancel()
	}
	err = errors.Join(err, <-watching)
	close(finished)
	return took, errors.Join(err, workers.Wait())
}

func doAll(ctx context.Context, work <-chan func(context.Context) error, finished <-chan struct{}) error {
	for {
		select {
		case do := <-work:
			if err := do(ctx); err != nil {
				return err
			}
		case <-finished:
			return nil
		}
	}
}

func createChildren(ctx context.Context, c client.Client, one written) error {
	for _, child := range one.children() {
		child.SetNamespace(one.app.Namespace)
		if err := c.Create(ctx, child, client.FieldOwner(appServiceOwner)); err != nil {
			return err
		}
	}
	return nil
}

func (w written) writeReady(ctx context.Context, c client.Client) error {
	before := w.app.DeepCopy()
	after := w.app.DeepCopy()
	after.Status = w.status
	return c.Status().Patch(ctx, after, client.MergeFrom(before), client.FieldOwner(appServiceOwner))
}
