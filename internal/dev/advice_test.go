// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"slices"
	"testing"
)

func TestMissingRightsAreReadFromTheLog(t *testing.T) {
	var said []string
	r := newAdvice(func(text string) { said = append(said, text) })
	const services = `ERROR Failed to watch {"error": "services is forbidden: User \"system:serviceaccount:a:b\" cannot list resource \"services\" in API group \"\" at the cluster scope"}`
	r.read(services)
	r.read(services)
	r.read("INFO Starting EventSource")
	if len(said) > 0 {
		t.Fatalf("said within the round: %q", said)
	}
	r.roundIsOver()
	r.read(services)
	r.read(`deployments.apps "a" is forbidden: User "b" cannot create resource "deployments" in API group "apps" in the namespace "default"`)
	r.read(`User "b" cannot patch resource "apps/status" in API group "kanggege.k8sio.com" in the namespace "default"`)
	want := []string{
		`the operator is not allowed to list services; add to its role: // +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch`,
		"the operator is not allowed to create deployments; add to its role: // +kubebuilder:rbac:groups=apps,resources=deployments,verbs=create",
		"the operator is not allowed to patch apps/status; add to its role: // +kubebuilder:rbac:groups=kanggege.k8sio.com,resources=apps/status,verbs=patch",
	}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

func TestCreatingInVainIsReadFromTheLog(t *testing.T) {
	var said []string
	a := newAdvice(func(text string) { said = append(said, text) })
	a.roundIsOver()
	const line = `ERROR Reconciler error {"name": "nginx-app", "error": "deployments.apps \"nginx-app\" already exists"}`
	for range invisible - 1 {
		a.read(line)
		a.read(`error: services "web" is there`)
	}
	if len(said) > 0 {
		t.Fatalf("a cache may be late: %q", said)
	}
	for range invisible {
		a.read(line)
	}
	want := []string{`the operator keeps creating deployments.apps "nginx-app", which already exists; its cache may not contain the object: check whether main restricts the cache (ByObject) to a label that the object does not have`}
	if !slices.Equal(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}
