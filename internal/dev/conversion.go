// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// onThisCluster returns the CRDs to apply: with a conversion webhook on this machine, or without one.
func (s *Session) onThisCluster(definitions []*unstructured.Unstructured) []*unstructured.Unstructured {
	local := make([]*unstructured.Unstructured, 0, len(definitions))
	for _, definition := range definitions {
		if s.Cluster.CallsBack {
			// The operator's port is known only after the build; until then no process serves conversion.
			port := cmp.Or(s.plan.webhookPort, s.ports.webhooks)
			local = append(local, localConversion(definition, port, s.certificates.authority))
		} else {
			local = append(local, withoutConversion(definition))
		}
	}
	return local
}
