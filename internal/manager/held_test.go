// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opdock/opdock/internal/controller"
)

// TestNothingOfAKindStartsBeforeItIsSetUp: a controller that starts before its last watch is there misses what happens until then.
func TestNothingOfAKindStartsBeforeItIsSetUp(t *testing.T) {
	var pods, controllers part
	a := &arrivals{parts: &errgroup.Group{}, setup: func(_ context.Context, m ctrl.Manager, _ controller.Kind) error {
		if err := errors.Join(m.Add(&pods), m.Add(&controllers)); err != nil {
			return err
		}
		if pods.started.Load() || controllers.started.Load() {
			t.Error("it works before it has been set up")
		}
		return nil
	}}
	if err := errors.Join(a.start(t.Context(), controller.Kinds[0]), a.parts.Wait()); err != nil {
		t.Fatal(err)
	}
	if !pods.started.Load() || !controllers.started.Load() {
		t.Error("not everything has been started")
	}
}

func TestNothingOfAKindStartsIfItCannotBeSetUp(t *testing.T) {
	var pods part
	broken := errors.New("broken")
	a := &arrivals{parts: &errgroup.Group{}, setup: func(_ context.Context, m ctrl.Manager, _ controller.Kind) error {
		return errors.Join(m.Add(&pods), broken)
	}}
	if err := a.start(t.Context(), controller.Kinds[0]); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	if err := a.parts.Wait(); err != nil || pods.started.Load() || len(a.running()) > 0 {
		t.Error("it works", err)
	}
}

// TestTheManagerStopsWhileAKindStarts: a manager of controller-runtime that stops while runnables are added to it may wait for
// them until its grace period is over.
func TestTheManagerStopsWhileAKindStarts(t *testing.T) {
	kind := controller.Kinds[0]
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(kind.GroupVersionKind, meta.RESTScopeNamespace)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		mgr, err := ctrl.NewManager(&rest.Config{Host: "apiserver.invalid"}, ctrl.Options{
			MapperProvider:          func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper, nil },
			Metrics:                 metricsserver.Options{BindAddress: "0"},
			GracefulShutdownTimeout: ptr.To(10 * time.Second),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		setUp := false
		a := &arrivals{manager: mgr, log: logr.Discard(), client: metadatafake.NewSimpleMetadataClient(scheme)}
		a.setup = func(_ context.Context, m ctrl.Manager, _ controller.Kind) error {
			setUp = true
			for range 300 {
				if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
					stop()
					<-ctx.Done()
					return nil
				})); err != nil {
					return err
				}
			}
			return nil
		}
		a.expect(kind.GroupVersionKind, func(ctx context.Context) error { return a.start(ctx, kind) })
		if err := mgr.Add(a); err != nil {
			t.Fatal(err)
		}
		if err := mgr.Start(ctx); err != nil || !setUp {
			t.Fatal(setUp, err)
		}
	}
}

// part is a part of a kind.
type part struct{ started atomic.Bool }

func (p *part) Start(context.Context) error {
	p.started.Store(true)
	return nil
}
