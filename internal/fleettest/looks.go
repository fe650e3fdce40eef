// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Looks is how often objects of a kind were looked at so far by all managers of this process, whatever came of it. A test
// that counts with it must not run in parallel with others.
func Looks(t testing.TB, kind string) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != "opdock_reconciles_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "kind" && label.GetValue() == kind {
					total += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return int(total)
}
