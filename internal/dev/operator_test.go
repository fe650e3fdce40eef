// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOperatorsThatServeWebhooks is also about one that leaves them out, which only shows when it runs.
func TestOperatorsThatServeWebhooks(t *testing.T) {
	hooks := []*unstructured.Unstructured{object(t, "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: hooks}}")}
	converting := []*unstructured.Unstructured{object(t, "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: frigates}, spec: {conversion: {strategy: Webhook}}}")}
	for about, test := range map[string]struct {
		manifests manifests
		unserved  bool
		want      bool
	}{
		"no webhooks":                       {manifests{}, false, false},
		"webhooks":                          {manifests{webhooks: hooks}, false, true},
		"conversion":                        {manifests{definitions: converting}, false, true},
		"not deployed, but served":          {manifests{webhooks: hooks, undeployed: true}, false, true},
		"neither deployed nor served":       {manifests{webhooks: hooks, undeployed: true}, true, false},
		"conversion, and others not served": {manifests{webhooks: hooks, definitions: converting, undeployed: true}, true, true},
	} {
		op := &Operator{manifests: test.manifests}
		if test.unserved {
			op.unserved.learn("the operator")
		}
		if got := op.Serves(); got != test.want {
			t.Errorf("%s: got %v", about, got)
		}
	}
}
