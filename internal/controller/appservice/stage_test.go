// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
)

// stage is a namespace with a manager that runs AppServices in it.
type stage struct {
	client.Client

	t         *testing.T
	namespace string
	wire      *fleettest.Wire
	stop      func()
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{Client: fleettest.Client(t), t: t, namespace: clustertest.Namespace(t)}
	s.start()
	return s
}

// start starts another manager, on a wire of its own.
func (s *stage) start() {
	s.t.Helper()
	var config = fleettest.Config(s.t)
	s.wire, config = fleettest.NewWire(config)
	s.stop = fleettest.Run(s.t, config, manager.Options{Namespaces: []string{s.namespace}, Kinds: appServices()})
}

func appServices() []controller.Kind {
	return slices.DeleteFunc(slices.Clone(controller.Kinds), func(kind controller.Kind) bool { return kind.Kind != "AppService" })
}

func (s *stage) create(manifest string) *appv1.AppService {
	s.t.Helper()
	return fleettest.Create(s.t, s.Client, s.namespace, manifest, &appv1.AppService{})
}

// web creates an AppService with the name web and the given spec.
func (s *stage) web(spec string) *appv1.AppService {
	s.t.Helper()
	return s.create("{apiVersion: app.example.com/v1, kind: AppService, metadata: {name: web}, spec: " + spec + "}")
}

func (s *stage) await(app *appv1.AppService, missing func(*appv1.AppService) string) *appv1.AppService {
	s.t.Helper()
	return fleettest.Await(s.t, s.Client, app, missing)
}

func (s *stage) awaitReady(app *appv1.AppService) *appv1.AppService {
	s.t.Helper()
	return s.await(app, ready)
}

func ready(app *appv1.AppService) string {
	return fleettest.Ready(app.Status.Conditions, app.Generation)
}

// change changes the spec.
func (s *stage) change(app *appv1.AppService, change func(*appv1.AppServiceSpec)) *appv1.AppService {
	s.t.Helper()
	before := app.DeepCopy()
	change(&app.Spec)
	if err := s.Patch(s.t.Context(), app, client.MergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
	return app
}

// child returns an object of the AppService's name, for waiting.
func child[T client.Object](s *stage, object T) T {
	object.SetNamespace(s.namespace)
	object.SetName("web")
	return object
}

func exists[T client.Object](T) string { return "" }
