// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A project that was deployed can be developed on the same cluster: its conversion leads to this machine instead of to the
// Service.
func TestConversionOfADeployedKindLeadsHere(t *testing.T) {
	s, _ := clusterSession(t, "conversion")
	cleared(t, s)
	a := s.applier
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
	s.manifests.definitions = []*unstructured.Unstructured{deployed}
	if err := s.clearWebhooks(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.try(t.Context(), s.onThisCluster(s.manifests.definitions)); err != nil {
		t.Errorf("trying: %v", err)
	}
	s.plan.webhookPort = 8000 // what the operator says when it was built
	var todo work
	if err := s.applyDefinitions(t.Context(), &Round{}, &todo); err != nil {
		t.Errorf("applying: %v", err)
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(deployed.GroupVersionKind())
	if err := a.server.Get(t.Context(), client.ObjectKeyFromObject(deployed), live); err != nil {
		t.Fatal(err)
	}
	leads, _, _ := unstructured.NestedMap(live.Object, "spec", "conversion", "webhook", "clientConfig")
	if leads["url"] != "https://127.0.0.1:8000/convert" || leads["service"] != nil {
		t.Errorf("conversion leads to %v", leads)
	}
}
