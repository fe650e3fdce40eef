// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recreate deletes objects, and creates them again as soon as they are gone.
func (r *run) recreate(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, one := range objects {
		if err := client.IgnoreNotFound(r.objects.Delete(ctx, one.DeepCopy())); err != nil {
			return fmt.Errorf("deleting %s %s: %w", one.GetKind(), one.GetName(), err)
		}
	}
	for _, one := range objects {
		err := r.create(ctx, one)
		if apierrors.IsAlreadyExists(err) {
			err = r.createLater(ctx, one)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createLater creates an object whose deletion has taken longer than a step may take. The operator gets the time that it gets before
// anything is called wrong: it may have ended, or try again soon.
func (r *run) createLater(ctx context.Context, object *unstructured.Unstructured) error {
	over, err := r.settleUntil(ctx, func() bool {
		_, err := r.live(ctx, object)
		return apierrors.IsNotFound(err)
	})
	if err != nil {
		return err
	}
	if live, err := r.live(ctx, object); err == nil && live.GetDeletionTimestamp() != nil {
		return &undeletedError{live, over}
	}
	return r.create(ctx, object)
}

// undeletedError is a custom resource that cannot be created again, because its deletion does not end.
type undeletedError struct {
	live *unstructured.Unstructured
	over rested
}

func (e *undeletedError) Error() string {
	return "the deletion of " + nameOfObject(e.live) + " does not end"
}

// orUndeleted adds a deletion that does not end to what is wrong after a step. Then the run has not broken down.
func (r *run) orUndeleted(step int, result *outcome, err error) error {
	var left *undeletedError
	if !errors.As(err, &left) {
		return err
	}
	c, live := r.campaign, left.live
	for i, s := range c.reference {
		if _, stays := find(s.state, live); stays != nil && c.o.Steps[i].Ends { // by then a step has deleted it
			result.skipped = err.Error() + " undisturbed either"
			return nil
		}
	}
	wrong := append(r.healthOf(step, left.over), &Observation{
		Step: step, Verdict: "deletion", Severity: high, Object: nameOfObject(live),
		Title: "The deletion of a " + live.GetKind() + " does not end",
		Want:  "absent", Got: "it waits for its finalizers: " + strings.Join(live.GetFinalizers(), ", "),
	})
	wrong, result.excused = c.excuse(wrong, left.over, r.board.writes())
	result.wrong = append(result.wrong, wrong...)
	return nil
}

// createInterval is the pause before an object is created again while one of the same name is not gone.
const createInterval = 20 * time.Millisecond

func (r *run) createAll(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if err := r.create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// create creates an object. It waits until one of the same name is gone, for as long as a step may take.
func (r *run) create(ctx context.Context, object *unstructured.Unstructured) error {
	var failed error
	err := wait.PollUntilContextTimeout(ctx, createInterval, r.campaign.o.Settling.Bound, true, func(ctx context.Context) (bool, error) {
		failed = r.objects.Create(ctx, object.DeepCopy(), client.FieldOwner(manager))
		return !apierrors.IsAlreadyExists(failed), nil
	})
	if failed != nil {
		return fmt.Errorf("creating %s %s: %w", object.GetKind(), object.GetName(), failed)
	}
	return err
}
