// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice_test

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
)

// TestNotReadyWhileAnObsoleteChildExists holds children with a finalizer, as clouds hold Services of load balancers. The cache
// does not hold the one that has lost its label, and its deletion must be noticed all the same.
func TestNotReadyWhileAnObsoleteChildExists(t *testing.T) {
	for name, unlabeled := range map[string]bool{"in the cache": false, "without its label": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			app := s.awaitReady(s.web(`{image: nginx, ports: [{port: 80}], autoscaling: {minReplicas: 1, maxReplicas: 4}}`))
			children := []client.Object{child(s, &corev1.Service{}), child(s, &autoscalingv2.HorizontalPodAutoscaler{})}
			for _, object := range children {
				edit(t, s.Client, object, func() { object.SetFinalizers([]string{"example.com/hold"}) })
			}
			s.change(app, func(spec *appv1.AppServiceSpec) { spec.Suspend = true })
			s.await(app, func(app *appv1.AppService) string { return reasonIs(app, flow.ReasonSuspended) })
			if unlabeled {
				for _, object := range children {
					edit(t, s.Client, object, func() { delete(object.GetLabels(), flow.LabelManagedBy) })
				}
			}
			app = s.change(app, func(spec *appv1.AppServiceSpec) { spec.Suspend, spec.Ports, spec.Autoscaling = false, nil, nil })
			want := "Deleting"
			if unlabeled {
				want = "DeletingUnlabeled"
			}
			s.await(app, func(app *appv1.AppService) string { return reasonIs(app, want) })
			edit(t, s.Client, children[0], func() { children[0].SetFinalizers(nil) })
			fleettest.AwaitGone(t, s.Client, children[0])
			// The other one is still there, and named now.
			s.await(app, func(app *appv1.AppService) string {
				ready := meta.FindStatusCondition(app.Status.Conditions, sharedv1.ConditionReady)
				if ready.Reason == want && ready.Message == "HorizontalPodAutoscaler web is no longer part of the spec and is being deleted" {
					return ""
				}
				return ready.Reason + ": " + ready.Message
			})
			edit(t, s.Client, children[1], func() { children[1].SetFinalizers(nil) })
			s.awaitReady(app)
		})
	}
}

func reasonIs(app *appv1.AppService, want string) string {
	ready := meta.FindStatusCondition(app.Status.Conditions, sharedv1.ConditionReady)
	switch {
	case ready == nil || ready.ObservedGeneration != app.Generation:
		return "the status is old"
	case ready.Reason != want:
		return "the reason is " + ready.Reason
	default:
		return ""
	}
}

func edit(t *testing.T, c client.Client, object client.Object, change func()) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := c.Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}
