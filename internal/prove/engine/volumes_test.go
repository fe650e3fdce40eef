// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/opdock/opdock/internal/prove/compare"
)

// TestVolumesThatHaveGrown is about an operator that resizes the claims of its StatefulSet, after the change was taken back.
func TestVolumesThatHaveGrown(t *testing.T) {
	const size, template = "spec.resources.requests.storage", "spec.volumeClaimTemplates[data].spec.resources.requests.storage"
	const claim, set, frigate, settings = "PersistentVolumeClaim default/data-victory-0", "StatefulSet default/victory", "Frigate default/victory", "ConfigMap default/victory"
	state := func(claimed, templated, told, says, data string) compare.Shape {
		return compare.Shape{Objects: map[string]compare.Fields{
			claim:    {size: claimed, "status.capacity.storage": claimed},
			set:      {template: templated},
			frigate:  {"spec.size": told, "status.conditions[Ready].status": says},
			settings: {"data.size": data},
		}}
	}
	resized := state("2Gi", "1Gi", "1Gi", "True", "1Gi")
	resized.Objects[claim]["status.allocatedResources.storage"] = "2Gi"
	before := state("1Gi", "1Gi", "1Gi", "True", "1Gi")
	for about, test := range map[string]struct {
		family string
		got    compare.Shape
		want   []string
	}{
		"the claims stay":                     {"input", state("2Gi", "1Gi", "1Gi", "True", "1Gi"), nil},
		"the template stays as well":          {"input", state("2Gi", "2Gi", "1Gi", "True", "1Gi"), nil},
		"the claims tell of it":               {"input", resized, nil},
		"in another unit":                     {"input", state("2048Mi", "1Gi", "1Gi", "True", "1Gi"), nil},
		"the operator says so":                {"input", state("2Gi", "2Gi", "1Gi", "False", "1Gi"), nil},
		"the operator says something else":    {"input", state("1Gi", "1Gi", "1Gi", "False", "1Gi"), []string{frigate}},
		"something else is not taken back":    {"input", state("2Gi", "1Gi", "1Gi", "True", "2Gi"), []string{settings}},
		"a claim is too small":                {"input", state("512Mi", "1Gi", "1Gi", "True", "1Gi"), []string{claim, claim}},
		"a step is taken back":                {"unobserved", state("2Gi", "1Gi", "1Gi", "True", "1Gi"), nil},
		"a claim grows without anyone asking": {"crash", state("2Gi", "1Gi", "1Gi", "True", "1Gi"), []string{claim, claim}},
	} {
		c := sailing()
		c.reference[1].shape = before
		r := &run{campaign: c, family: test.family}
		var got []string
		for _, d := range r.deviationsOf(1, test.got) {
			got = append(got, d.Object)
		}
		t.Run(about, func(t *testing.T) { expectLines(t, got, test.want...) })
	}
}
