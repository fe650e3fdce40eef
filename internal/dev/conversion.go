// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// onThisCluster is how the definitions are applied: the cluster may call this machine to convert, or nobody does.
func (s *Session) onThisCluster(definitions []*unstructured.Unstructured) []*unstructured.Unstructured {
	local := make([]*unstructured.Unstructured, 0, len(definitions))
	for _, definition := range definitions {
		if s.Cluster.CallsBack {
			// The operator's own port is known only when it was built; until then nothing serves any other.
			port := cmp.Or(s.plan.webhookPort, s.ports.webhooks)
			local = append(local, localConversion(definition, port, s.certificates.authority))
		} else {
			local = append(local, withoutConversion(definition))
		}
	}
	return local
}
