// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

func TestIgnoreStatus(t *testing.T) {
	created := metav1.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	later := metav1.NewTime(created.Add(time.Minute))
	entry := func(manager, fields string, at metav1.Time) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Time: &at, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const ours = `{"f:spec":{"f:metrics":{},"f:maxReplicas":{}}}`
	before := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{entry("opdock-appservice", ours, created)},
	}}
	for name, test := range map[string]struct {
		change func(*autoscalingv2.HorizontalPodAutoscaler)
		want   bool
	}{
		"status":     {func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Status.CurrentReplicas = 3 }, false},
		"labels":     {func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Labels = map[string]string{"a": "b"} }, true},
		"deletion":   {func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.DeletionTimestamp = &later }, true},
		"generation": {func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Generation++ }, true},
		"a field that another writer took": {func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.ManagedFields = []metav1.ManagedFieldsEntry{
				entry("opdock-appservice", `{"f:spec":{"f:maxReplicas":{}}}`, created), entry("editor", `{"f:spec":{"f:metrics":{}}}`, later),
			}
		}, true},
		"a field that another writer changed under our name": {func(hpa *autoscalingv2.HorizontalPodAutoscaler) {
			hpa.ManagedFields = []metav1.ManagedFieldsEntry{entry("opdock-appservice", ours, later)}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			test.change(after)
			if got := IgnoreStatus().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("selected is %v, want %v", got, test.want)
			}
		})
	}
}

func TestALostFinalizerIsNews(t *testing.T) {
	with := robot()
	with.Finalizers = []string{Finalizer}
	without := robot()
	leaving := robot()
	leaving.DeletionTimestamp = new(metav1.Now())
	for name, test := range map[string]struct {
		before, after *robotv1.Robot
		want          bool
	}{
		"removed":                        {with, without, true},
		"added":                          {without, with, false},
		"kept":                           {with, with, false},
		"removed by us, at the very end": {with, leaving, false},
	} {
		if got := whenFinalizerIsLost().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: selected is %v", name, got)
		}
	}
}
