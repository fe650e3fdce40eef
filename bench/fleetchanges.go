// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// change is one of the changes that a kubebuilder beginner made by hand while counting reconciles.
type change struct {
	name string
	// document is the count in those notes for pods with four containers, or with two where the notes lack that
	// count.
	document int
	make     func(ctx context.Context, f *fleet) error

	reconciles, writes float64
}

// settled is how long the counters must not change. It is longer than the controllers delay status updates that
// change only numbers.
const settled = flow.MinorInterval + 2*time.Second

func documentedChanges() []change {
	scale := func(to int32) func(context.Context, *fleet) error {
		return edit(func(spec *appv1.AppServiceSpec) { spec.Size = ptr.To(to) })
	}
	strategy := func(to appsv1.DeploymentStrategyType) func(context.Context, *fleet) error {
		return edit(func(spec *appv1.AppServiceSpec) { spec.Strategy = &sharedv1.DeploymentStrategy{Type: to} })
	}
	return []change{
		{name: "delete one pod of three", document: 2, make: deletePods(1)},
		{name: "delete two pods of three", document: 2, make: deletePods(2)},
		{name: "replicas 3 → 1", document: 4, make: scale(1)},
		{name: "replicas 1 → 3", document: 4, make: scale(3)},
		{name: "replicas 3 → 4", document: 4, make: scale(4)},
		{name: "strategy RollingUpdate → Recreate", document: 2, make: strategy(appsv1.RecreateDeploymentStrategyType)},
		{name: "strategy Recreate → RollingUpdate", document: 2, make: strategy(appsv1.RollingUpdateDeploymentStrategyType)},
		{name: "replicas 4 → 0", document: 4, make: scale(0)},
	}
}

func measureChanges(ctx context.Context, e environment, program string) ([]change, error) {
	changes := documentedChanges()
	return changes, withFleet(ctx, e, program, "fleet-changes", func(f *fleet) error {
		app := &appv1.AppService{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "app"},
			Spec: appv1.AppServiceSpec{
				Size: ptr.To[int32](3), Image: "web", Ports: []appv1.ServicePort{{Port: 80}},
				Strategy: &sharedv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType},
			},
		}
		if err := f.Create(ctx, app); err != nil {
			return err
		}
		before, err := f.settle(ctx)
		if err != nil {
			return err
		}
		for i := range changes {
			if err := changes[i].make(ctx, f); err != nil {
				return fmt.Errorf("%s: %w", changes[i].name, err)
			}
			after, err := f.settle(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", changes[i].name, err)
			}
			changes[i].reconciles, changes[i].writes = after.reconciles-before.reconciles, after.writes-before.writes
			before = after
		}
		return nil
	})
}

// settle waits until the AppService is ready and the manager is idle.
func (f *fleet) settle(ctx context.Context) (counts, error) {
	deadline := time.Now().Add(2 * time.Minute)
	var last counts
	since := time.Now()
	for time.Now().Before(deadline) {
		now, err := f.metrics(ctx)
		if err != nil {
			return now, err
		}
		app, err := f.app(ctx)
		if err != nil {
			return now, err
		}
		ready := app.Status.ObservedGeneration == app.Generation && meta.IsStatusConditionTrue(app.Status.Conditions, sharedv1.ConditionReady)
		if now.writes != last.writes || now.reconciles != last.reconciles || !ready {
			last, since = now, time.Now()
		} else if time.Since(since) > settled {
			return now, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return last, errors.New("the fleet did not become idle within 2 minutes")
}

func (f *fleet) app(ctx context.Context) (*appv1.AppService, error) {
	app := &appv1.AppService{}
	return app, f.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "app"}, app)
}

func edit(change func(*appv1.AppServiceSpec)) func(context.Context, *fleet) error {
	return func(ctx context.Context, f *fleet) error {
		app, err := f.app(ctx)
		if err != nil {
			return err
		}
		before := app.DeepCopy()
		change(&app.Spec)
		return f.Patch(ctx, app, client.MergeFrom(before))
	}
}

func deletePods(number int) func(context.Context, *fleet) error {
	return func(ctx context.Context, f *fleet) error {
		var pods corev1.PodList
		if err := f.List(ctx, &pods, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for i := range pods.Items[:number] {
			if err := f.Delete(ctx, &pods.Items[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

func writeChanges(p printer, changes []change) {
	p("\nThe reconciles that each change causes, next to the counts in the notes of a kubebuilder beginner. See")
	p("[how often is a reconciler called](reconciles.md).\n")
	p("| change | count in the notes | reconciles here | writes here |")
	p("|---|---:|---:|---:|")
	for _, c := range changes {
		p("| %s | %d | %.0f | %.0f |", c.name, c.document, c.reconciles, c.writes)
	}
}
