// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"slices"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/opdock/opdock/internal/controller"
)

// TestNothingOfAKindStartsBeforeItIsSetUp: a controller that starts before its last watch is there misses what happens until then.
func TestNothingOfAKindStartsBeforeItIsSetUp(t *testing.T) {
	mgr := &startsAtOnce{}
	pods, controllers := &part{}, &part{}
	a := &arrivals{manager: mgr, setup: func(_ context.Context, m ctrl.Manager, _ controller.Kind) error {
		if err := errors.Join(m.Add(pods), m.Add(controllers)); err != nil {
			return err
		}
		if len(mgr.started) > 0 {
			t.Error("it works before it has been set up")
		}
		return nil
	}}
	if err := a.start(t.Context(), controller.Kinds[0]); err != nil {
		t.Fatal(err)
	}
	if want := []manager.Runnable{pods, controllers}; !slices.Equal(mgr.started, want) {
		t.Errorf("%d parts have been started, or in another order", len(mgr.started))
	}
}

func TestNothingOfAKindStartsIfItCannotBeSetUp(t *testing.T) {
	mgr := &startsAtOnce{}
	broken := errors.New("broken")
	a := &arrivals{manager: mgr, setup: func(_ context.Context, m ctrl.Manager, _ controller.Kind) error {
		return errors.Join(m.Add(&part{}), broken)
	}}
	if err := a.start(t.Context(), controller.Kinds[0]); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if len(mgr.started) > 0 || len(a.running()) > 0 {
		t.Error("it works")
	}
}

// startsAtOnce is a manager that runs already.
type startsAtOnce struct {
	ctrl.Manager

	started []manager.Runnable
}

func (m *startsAtOnce) Add(runnable manager.Runnable) error {
	m.started = append(m.started, runnable)
	return nil
}

type part struct{ _ int } // not empty, so that two of them are not the same

func (*part) Start(context.Context) error { return nil }
