// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// orderPlans let things happen in another order, or at the same time.
func orderPlans(c *campaign) (plans []*Plan) {
	for step := range c.o.Steps {
		plans = append(plans, &Plan{
			Family: "order", Variant: "operator-late", Step: step, rank: step,
			Says: fmt.Sprintf("The operator is not running during step %q, and is started after it", c.o.Steps[step].Name),
		})
	}
	if len(c.o.Steps) > 1 && !c.o.Steps[0].Ends && len(c.o.Subjects) > 0 {
		plans = append(plans,
			&Plan{Family: "order", Variant: "recreate", Step: 1, Says: "The custom resources are deleted and created again under the same names at once"},
			&Plan{Family: "order", Variant: "twins", Step: 1, rank: 1, Says: "Second custom resources with the same specs and other names come and go"})
	}
	if len(c.o.Others) > 0 && len(c.o.Subjects) > 0 {
		plans = append(plans, &Plan{Family: "order", Variant: "late", Step: 0, Says: "The custom resources come before the objects that they refer to"})
	}
	return plans
}

func reorder(r *run, p *Plan) (*disturbance, error) {
	c := r.campaign
	switch p.Variant {
	case "operator-late":
		return &disturbance{withoutOperator: true, afterStep: true, counts: true, act: func(ctx context.Context) error { return r.do(ctx, p.Step) }, heal: r.startOperator}, nil
	case "recreate":
		return &disturbance{act: func(ctx context.Context) error {
			for _, subject := range c.o.Subjects {
				if err := client.IgnoreNotFound(r.objects.Delete(ctx, subject.DeepCopy())); err != nil {
					return err
				}
			}
			return r.createAll(ctx, c.o.Subjects)
		}}, nil
	case "twins":
		var twins []*unstructured.Unstructured
		for _, subject := range c.o.Subjects {
			twin := subject.DeepCopy()
			twin.SetName(subject.GetName() + "-twin")
			twins = append(twins, twin)
		}
		return &disturbance{
			may: nothing,
			act: func(ctx context.Context) error { return r.createAll(ctx, twins) },
			heal: func(ctx context.Context) error {
				for _, twin := range twins {
					if err := client.IgnoreNotFound(r.objects.Delete(ctx, twin.DeepCopy())); err != nil {
						return err
					}
				}
				return nil
			},
		}, nil
	case "late":
		return &disturbance{afterStep: true, act: func(ctx context.Context) error { return r.createAll(ctx, c.o.Subjects) }, heal: func(ctx context.Context) error {
			return r.createAll(ctx, c.o.Others)
		}}, nil
	}
	return nil, fmt.Errorf("there is no order %q", p.Variant)
}

// Creating waits until an object of the same name is gone.
const (
	createInterval = 20 * time.Millisecond
	createPatience = 20 * time.Second
)

func (r *run) createAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		var failed error
		err := wait.PollUntilContextTimeout(ctx, createInterval, createPatience, true, func(ctx context.Context) (bool, error) {
			failed = r.objects.Create(ctx, object.DeepCopy(), client.FieldOwner(manager))
			return !apierrors.IsAlreadyExists(failed), nil
		})
		if failed != nil {
			return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), failed)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
