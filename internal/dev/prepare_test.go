// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/generate"
)

func TestGeneratedText(t *testing.T) {
	for want, result := range map[string]generate.Result{
		"nothing to generate":   {Skipped: true},
		"generated nothing new": {Files: 4},
		"generated 1 file":      {Files: 4, Changes: []generate.Change{{Path: "a.go"}}},
	} {
		if got := generatedText(&result); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A right that the manifests no longer give is taken away, but the account and its namespace stay.
func TestOutdatedRights(t *testing.T) {
	account := object(t, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: captain, namespace: old}}")
	kept := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: captain}}")
	changed := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: captain}, rules: []}")
	role := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: captain, namespace: port}}")
	elsewhere := object(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: captain, namespace: quay}}")
	gone := outdatedRights([]*unstructured.Unstructured{account, kept, role}, []*unstructured.Unstructured{changed, elsewhere})
	if len(gone) != 1 || gone[0] != role {
		t.Errorf("got %v", gone)
	}
}
