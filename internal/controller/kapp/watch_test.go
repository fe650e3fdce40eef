// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	appv1 "github.com/opdock/opdock/api/app/v1"
	kappv1 "github.com/opdock/opdock/api/kapp/v1"
)

func TestWhatMatters(t *testing.T) {
	ready := condition("Ready", metav1.ConditionFalse, 1, "RollingOut", "1 of 2")
	for _, test := range []struct {
		name    string
		change  func(*appv1.AppService)
		matters bool
	}{
		{"nothing", func(*appv1.AppService) {}, false},
		{"a counter", func(app *appv1.AppService) { app.Status.Replicas, app.Status.ReadyReplicas = 7, 6 }, false},
		{"a condition of the kind's own", func(app *appv1.AppService) {
			app.Status.Conditions = append(app.Status.Conditions, condition("Available", metav1.ConditionTrue, 1, "Enough", ""))
		}, false},
		{"the time of a condition", func(app *appv1.AppService) { app.Status.Conditions[0].LastTransitionTime = metav1.Now() }, false},
		{"the spec", func(app *appv1.AppService) { app.Generation++ }, true},
		{"deletion", func(app *appv1.AppService) { now := metav1.Now(); app.DeletionTimestamp = &now }, true},
		{"a label", func(app *appv1.AppService) { app.Labels = map[string]string{"a": "b"} }, true},
		{"an annotation", func(app *appv1.AppService) { app.Annotations = map[string]string{"a": "b"} }, true},
		{"the owner", func(app *appv1.AppService) { app.OwnerReferences = nil }, true},
		{"ready", func(app *appv1.AppService) { app.Status.Conditions[0].Status = metav1.ConditionTrue }, true},
		{"ready for another generation", func(app *appv1.AppService) { app.Status.Conditions[0].ObservedGeneration++ }, true},
		{"how far it is", func(app *appv1.AppService) { app.Status.Conditions[0].Message = "2 of 2" }, true},
		{"stalled", func(app *appv1.AppService) {
			app.Status.Conditions = append(app.Status.Conditions, condition("Stalled", metav1.ConditionTrue, 1, "X", "no image"))
		}, true},
		{"no conditions", func(app *appv1.AppService) { app.Status.Conditions = nil }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := &appv1.AppService{
				ObjectMeta: metav1.ObjectMeta{Generation: 1, OwnerReferences: []metav1.OwnerReference{{Name: "store"}}},
				Status:     appv1.AppServiceStatus{Conditions: []metav1.Condition{ready}},
			}
			after := before.DeepCopy()
			test.change(after)
			if got := whenItMatters(componentKinds()[0]).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.matters {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestIsOf(t *testing.T) {
	robots := componentKinds()[2]
	for resource, want := range map[string]bool{
		`{"apiVersion": "robot.llleon.io/v1", "kind": "Robot"}`: true, `{"apiVersion": "robot.llleon.io/v2", "kind": "Robot"}`: false,
		`{"apiVersion": "app.example.com/v1", "kind": "AppService"}`: false, `"text"`: false, ``: false,
	} {
		component := kappv1.Component{}
		component.Resource.Raw = []byte(resource)
		if got := robots.isOf(component); got != want {
			t.Errorf("%s: got %v", resource, got)
		}
	}
}
