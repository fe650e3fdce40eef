// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/fleettest"
)

// TestAutoscalerFollowsTheLoad has the autoscaler of an AppService act on simulated usage, up and down.
func TestAutoscalerFollowsTheLoad(t *testing.T) {
	s := newStage(t)
	// A load of 400m, at half of the 200m that each pod requests.
	app := s.web(`{image: nginx, resources: {requests: {cpu: 200m}}, podMetadata: {annotations: {opdock.dev/usage: "cpu=400m,shared"}},
		autoscaling: {minReplicas: 1, maxReplicas: 6, targetCPUUtilizationPercentage: 50, scaleDownStabilizationSeconds: 0}}`)
	app = s.await(app, func(app *appv1.AppService) string { return replicasAre(app, 4) })

	pods := &corev1.PodList{}
	if err := s.List(t.Context(), pods, client.InNamespace(s.namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		before := pod.DeepCopy()
		pod.Annotations["opdock.dev/usage"] = "cpu=200m,shared"
		if err := s.Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	s.await(app, func(app *appv1.AppService) string { return replicasAre(app, 2) })
	deployment := fleettest.Await(t, s.Client, child(s, &appsv1.Deployment{}), exists)
	if got := ptr.Deref(deployment.Spec.Replicas, 0); got != 2 {
		t.Errorf("the autoscaler's 2 became %d", got)
	}
}
