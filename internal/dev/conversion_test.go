// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

// A project that was deployed can be developed on the same cluster: its conversion leads to this machine instead of to the
// Service.
func TestConversionOfADeployedKindLeadsHere(t *testing.T) {
	testenv.ControlPlane(t)
	a, err := newApplier(clustertest.Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	deployed := object(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tugs.conversion.example.com}
spec:
  group: conversion.example.com
  names: {kind: Tug, plural: tugs, singular: tug, listKind: TugList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: tugs, namespace: default, path: /convert}}}
`)
	if err := a.server.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(deployed.DeepCopy()), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The next run of this test starts without it.
		ctx := context.WithoutCancel(t.Context())
		if err := a.remove(ctx, []*unstructured.Unstructured{deployed}); err != nil {
			t.Error(err)
		}
		if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(a.server.Get(ctx, client.ObjectKeyFromObject(deployed), deployed.DeepCopy())), nil
		}); err != nil {
			t.Error(err)
		}
	})
	made, err := makeCertificates(t.TempDir(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s := &Session{
		Options: Options{Cluster: Cluster{CallsBack: true}}, applier: a, certificates: made, ports: ports{webhooks: 7000},
		manifests: manifests{definitions: []*unstructured.Unstructured{deployed}},
	}
	if err := s.clearWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.try(t.Context(), s.onThisCluster(s.manifests.definitions)); err != nil {
		t.Errorf("trying: %v", err)
	}
	s.plan.webhookPort = 8000 // what the operator says when it was built
	if _, err := a.apply(t.Context(), s.onThisCluster(s.manifests.definitions)); err != nil {
		t.Errorf("applying: %v", err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(deployed.GroupVersionKind())
	if err := a.server.Get(t.Context(), client.ObjectKeyFromObject(deployed), live); err != nil {
		t.Fatal(err)
	}
	leads, _, _ := unstructured.NestedMap(live.Object, clientConfig...)
	if leads["url"] != "https://127.0.0.1:8000/convert" || leads["service"] != nil {
		t.Errorf("conversion leads to %v", leads)
	}
}
