// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package kapp_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opdock/opdock/api/app/v1"
	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/config/samples"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

// TestTheWholeFleet has every component's real controller, and pods that take the time they take.
func TestTheWholeFleet(t *testing.T) {
	t.Parallel()
	s := newStage(t, "AppService", "PodCluster", "Robot", "Collector")
	for _, name := range []string{"kanggege_v1_kapp.yaml", "kanggege_v1_kapp_full.yaml"} {
		data, err := samples.Manifests.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		kapp := s.awaitReady(s.create(string(data)))
		if count := int32(len(kapp.Spec.Components)); kapp.Status.ComponentCount != count || kapp.Status.ReadyComponentCount != count { //nolint:gosec // a handful
			t.Errorf("%s: %+v", name, kapp.Status)
		}
		if kapp.Name != "store" {
			continue
		}
		s.cameInOrder(&kubegroupv1.PodCluster{}, "store-members", &robotv1.Robot{}, "store-workers", &collectorv1.Collector{}, "store-addresses")
		s.cameInOrder(&kubegroupv1.PodCluster{}, "store-members", &appv1.AppService{}, "store-web", &collectorv1.Collector{}, "store-addresses")
		if err := s.Delete(t.Context(), kapp); err != nil {
			t.Fatal(err)
		}
		fleettest.AwaitGone(t, s.Client, kapp)
	}
	// Of what the components consisted of, only that of the first sample stays.
	testenv.Await(t, func() string {
		var deployments appsv1.DeploymentList
		var pods corev1.PodList
		if err := s.List(t.Context(), &deployments, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace)); err != nil {
			return err.Error()
		}
		if len(deployments.Items) != 1 || len(pods.Items) != 1 {
			return fmt.Sprintf("%d deployments and %d pods are there", len(deployments.Items), len(pods.Items))
		}
		return ""
	})
}

// cameInOrder fails if an object was created before the one in front of it was ready. It is given types and names in turns.
func (s *stage) cameInOrder(objects ...any) {
	s.t.Helper()
	var last metav1.Time
	for i := 0; i < len(objects); i += 2 {
		object, name := objects[i].(client.Object), objects[i+1].(string)
		object.SetNamespace(s.namespace)
		object.SetName(name)
		object = fleettest.Await(s.t, s.Client, object, exists)
		if created := object.GetCreationTimestamp(); created.Before(&last) {
			s.t.Errorf("%s was created at %v, but what it depends on was ready at %v", name, created, last)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			s.t.Fatal(err)
		}
		var status struct {
			Conditions []metav1.Condition `json:"conditions"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content["status"].(map[string]any), &status); err != nil {
			s.t.Fatal(err)
		}
		last = meta.FindStatusCondition(status.Conditions, sharedv1.ConditionReady).LastTransitionTime
	}
}
