// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// creators is how many requests are under way at a time.
const creators = 8

func unlimited(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.QPS = -1
	return config
}

// createAppServices returns how long it takes until all are ready.
func (f *fleet) createAppServices(ctx context.Context, size int) (time.Duration, error) {
	return createAndAwait(ctx, f.WithWatch, f.namespace, size, &appv1.AppServiceList{},
		func(name string) []client.Object { return []client.Object{appService(name)} }, isReady)
}

// deleteAppServices returns when nothing is left of them.
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

// createDirectly creates the Deployments and Services that AppServices would have, in their final form, and returns how
// long it takes until all are available.
func createDirectly(ctx context.Context, config *rest.Config, size int) (time.Duration, error) {
	c, err := client.NewWithWatch(unlimited(config), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return 0, err
	}
	return createAndAwait(ctx, c, metav1.NamespaceDefault, size, &appsv1.DeploymentList{}, children, isAvailable)
}

// createWithoutManager does by hand what no manager can do without: the AppService is created, its children are, and
// its status is written once, when the Deployment is available. It returns how long it takes until all are ready, which
// is the least that any controller could need here.
func createWithoutManager(ctx context.Context, c client.WithWatch, size int) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writers, writerContext := errgroup.WithContext(ctx)
	writers.SetLimit(creators + 1)
	writers.Go(func() error {
		return awaitAll(ctx, c, metav1.NamespaceDefault, &appsv1.DeploymentList{}, size, func(object runtime.Object) bool {
			if isAvailable(object) {
				writers.Go(func() error { return writeReady(writerContext, c, object.(client.Object).GetName()) })
			}
			return isAvailable(object)
		})
	})
	took, err := createAndAwait(writerContext, c, metav1.NamespaceDefault, size, &appv1.AppServiceList{},
		func(name string) []client.Object { return append([]client.Object{appService(name)}, children(name)...) }, isReady)
	return took, errors.Join(err, writers.Wait())
}

func writeReady(ctx context.Context, c client.Client, name string) error {
	app := appService(name)
	before := app.DeepCopy()
	app.Status.ObservedGeneration = 1
	meta.SetStatusCondition(&app.Status.Conditions, metav1.Condition{Type: sharedv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: 1})
	return c.Status().Patch(ctx, app, client.MergeFrom(before))
}

func isReady(object runtime.Object) bool {
	app, ok := object.(*appv1.AppService)
	return ok && meta.IsStatusConditionTrue(app.Status.Conditions, sharedv1.ConditionReady)
}

func appService(name string) *appv1.AppService {
	return &appv1.AppService{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       appv1.AppServiceSpec{Size: ptr.To[int32](1), Image: "web", Ports: []appv1.ServicePort{{Port: 80}}},
	}
}

// children are what the fleet makes of an AppService.
func children(name string) []client.Object {
	labels := map[string]string{"app": name}
	of := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, Labels: labels}
	return []client.Object{
		&appsv1.Deployment{ObjectMeta: of, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{{
						Name: "app", Image: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
					}},
				},
			},
		}},
		&corev1.Service{ObjectMeta: of, Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}}},
	}
}

func isAvailable(object runtime.Object) bool {
	deployment, ok := object.(*appsv1.Deployment)
	return ok && deployment.Status.AvailableReplicas >= 1
}

// createAndAwait creates objects under many names in a namespace, and watches until those in the list are done.
func createAndAwait(ctx context.Context, c client.WithWatch, namespace string, size int, list client.ObjectList, objects func(name string) []client.Object, done func(runtime.Object) bool) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	began := time.Now()
	group, groupContext := errgroup.WithContext(ctx)
	group.SetLimit(creators)
	go func() {
		for i := range size {
			group.Go(func() error {
				for _, object := range objects(fmt.Sprintf("app-%d", i)) {
					object.SetNamespace(namespace)
					if err := c.Create(groupContext, object); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			say("creating: %v", err)
			cancel()
		}
	}()
	err := awaitAll(ctx, c, namespace, list, size, done)
	return time.Since(began), err
}

// awaitAll watches until enough objects are done. Servers end watches now and then; then it looks and watches again.
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
	return fmt.Errorf("%d of %d were done: %w", len(finished), size, context.Cause(ctx))
}
