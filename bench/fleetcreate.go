// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// creators is the number of concurrent create requests.
const creators = 8

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// createAppServices creates AppServices and returns the time until all of them are ready.
func (f *fleet) createAppServices(ctx context.Context, size int, name func(int) string) (time.Duration, error) {
	return createAndAwait(ctx, f.WithWatch, f.namespace, size, &appv1.AppServiceList{},
		func(i int) client.Object { return appService(name(i)) }, nil, isReady)
}

func appName(i int) string { return fmt.Sprintf("app-%d", i) }

// deleteAppServices deletes all AppServices and returns when their Deployments and pods are gone too.
func (f *fleet) deleteAppServices(ctx context.Context) error {
	if err := f.DeleteAllOf(ctx, &appv1.AppService{}, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, list := range []client.ObjectList{&appv1.AppServiceList{}, &appsv1.DeploymentList{}, &corev1.PodList{}} {
			if err := f.List(ctx, list, client.InNamespace(f.namespace), client.Limit(1)); err != nil || meta.LenList(list) > 0 {
				return false, err
			}
		}
		return true, nil
	})
}

func isReady(object runtime.Object) bool {
	app, ok := object.(*appv1.AppService)
	return ok && meta.IsStatusConditionTrue(app.Status.Conditions, sharedv1.ConditionReady)
}

func isAvailable(object runtime.Object) bool {
	deployment, ok := object.(*appsv1.Deployment)
	return ok && deployment.Status.AvailableReplicas >= 1
}

// createAndAwait creates objects in a namespace, and watches the list until that many are done. It calls created for
// each object after its creation.
func createAndAwait(ctx context.Context, c client.WithWatch, namespace string, size int, list client.ObjectList,
	object func(i int) client.Object, created func(client.Object), done func(runtime.Object) bool,
) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	names := make(map[string]bool, size)
	objects := make([]client.Object, size)
	for i := range objects {
		objects[i] = object(i)
		objects[i].SetNamespace(namespace)
		names[objects[i].GetName()] = true
	}
	began := time.Now()
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	go func() {
		for _, object := range objects {
			group.Go(func() error {
				if err := c.Create(groupContext, object); err != nil {
					return err
				}
				if created != nil {
					created(object)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			say("creating: %v", err)
			cancel()
		}
	}()
	// Ignore other objects, such as the one that warmed up the cluster.
	createdAndDone := func(object runtime.Object) bool { return names[object.(client.Object).GetName()] && done(object) }
	err := awaitAll(ctx, c, namespace, list, size, createdAndDone)
	return time.Since(began), err
}

// awaitAll watches until enough objects are done. When the server ends the watch, it lists and watches again.
func awaitAll(ctx context.Context, c client.WithWatch, namespace string, list client.ObjectList, size int, done func(runtime.Object) bool) error {
	finished := map[string]bool{}
	note := func(object runtime.Object) error {
		if name := object.(client.Object).GetName(); !finished[name] && done(object) {
			finished[name] = true
		}
		return nil
	}
	for ctx.Err() == nil {
		if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if err := meta.EachListItem(list, note); err != nil {
			return err
		}
		watcher, err := c.Watch(ctx, list, client.InNamespace(namespace),
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		if err != nil {
			return err
		}
		for event := range watcher.ResultChan() {
			if event.Type == watch.Error {
				break
			}
			_ = note(event.Object)
			if len(finished) == size {
				watcher.Stop()
				return nil
			}
		}
		watcher.Stop()
	}
	return fmt.Errorf("%d of %d objects were done: %w", len(finished), size, context.Cause(ctx))
}
