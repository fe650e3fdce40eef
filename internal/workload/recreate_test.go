// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
)

// recreate lets an AppService change its strategy, and returns its Deployment before and after.
func recreate(t *testing.T, between func(client.Client, *appsv1.Deployment)) (before, after *appsv1.Deployment) {
	t.Helper()
	config := fleettest.Config(t)
	c, namespace := fleettest.Client(t), clustertest.Namespace(t)
	fleettest.Run(t, config, manager.Options{Namespaces: []string{namespace}})
	app := fleettest.Create(t, c, namespace, "{metadata: {name: web}, spec: {image: web}}", &appv1.AppService{})
	ready := func(app *appv1.AppService) string { return fleettest.Ready(app.Status.Conditions, app.Generation) }
	app = fleettest.Await(t, c, app, ready)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	exists := func(*appsv1.Deployment) string { return "" }
	before = fleettest.Await(t, c, deployment, exists)
	if between != nil {
		between(c, before)
		before = fleettest.Await(t, c, deployment, exists)
	}
	changed := app.DeepCopy()
	changed.Spec.Strategy = &sharedv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	if err := c.Patch(t.Context(), changed, client.MergeFrom(app)); err != nil {
		t.Fatal(err)
	}
	fleettest.Await(t, c, changed, ready)
	return before, fleettest.Await(t, c, deployment, exists)
}

func TestRecreateIsOneChange(t *testing.T) {
	before, after := recreate(t, nil)
	if s := after.Spec.Strategy; s.Type != appsv1.RecreateDeploymentStrategyType || s.RollingUpdate != nil {
		t.Errorf("the strategy is %+v", s)
	}
	// Others look at each version that asks for something else.
	if after.Generation != before.Generation+1 {
		t.Errorf("generation %d has become %d", before.Generation, after.Generation)
	}
}

func TestRecreateTakesOutWhatOthersHaveSet(t *testing.T) {
	_, after := recreate(t, func(c client.Client, d *appsv1.Deployment) {
		// The same value as ours, so that it belongs to both.
		patch := `{"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"strategy": {"rollingUpdate": {"maxSurge": "25%"}}}}`
		if err := c.Patch(t.Context(), d.DeepCopy(), client.RawPatch(types.ApplyPatchType, []byte(patch)), client.FieldOwner("somebody")); err != nil {
			t.Fatal(err)
		}
	})
	if s := after.Spec.Strategy; s.Type != appsv1.RecreateDeploymentStrategyType || s.RollingUpdate != nil {
		t.Errorf("the strategy is %+v", s)
	}
	if !slices.ContainsFunc(after.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == "opdock-appservice" }) {
		t.Errorf("it is not ours: %+v", after.ManagedFields)
	}
}
