// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdtest helps tests that install CRDs on a cluster that they share.
package crdtest

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/opdock/opdock/internal/testenv"
)

// Resource is the resource of CRDs.
var Resource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Remove deletes a CRD and waits until it is gone, so that a test can run again on its cluster. Defer it: functions for
// t.Cleanup run after the context of the test has ended.
func Remove(t testing.TB, client dynamic.Interface, name string) {
	t.Helper()
	if err := client.Resource(Resource).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	testenv.Eventually(t, name+" is gone", func() bool {
		_, err := client.Resource(Resource).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
