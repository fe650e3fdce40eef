// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/opdock/opdock/internal/prove/compare"
)

// Kubernetes lets volumes grow, and never shrink. If a custom resource gets a larger volume and the change is taken back, the claims
// stay as they are, whatever the operator does.

// volumeSizes are the fields with the size of a volume, by kind.
var volumeSizes = map[string]*regexp.Regexp{
	"PersistentVolumeClaim": regexp.MustCompile(`^(spec\.resources\.requests|status\.capacity)\.storage$`),
	"PersistentVolume":      regexp.MustCompile(`^spec\.capacity\.storage$`),
	"StatefulSet":           regexp.MustCompile(`^spec\.volumeClaimTemplates\[[^\]]*\]\.spec\.resources\.requests\.storage$`),
}

// isGrownVolume reports whether a volume is larger than it was undisturbed.
func isGrownVolume(d compare.Difference) bool {
	kind, _, _ := strings.Cut(d.Object, " ")
	if sizes := volumeSizes[kind]; sizes == nil || !sizes.MatchString(d.Path) {
		return false
	}
	want, err := resource.ParseQuantity(d.Want)
	if err != nil {
		return false
	}
	got, err := resource.ParseQuantity(d.Got)
	return err == nil && got.Cmp(want) > 0
}

// withoutGrownVolumes leaves out sizes of volumes that cannot be taken back, and what the status of the claims and of custom resources
// says about that.
func (c *campaign) withoutGrownVolumes(found []compare.Difference) []compare.Difference {
	grown := map[string]bool{}
	for _, d := range found {
		if isGrownVolume(d) {
			grown[d.Object] = true
		}
	}
	return slices.DeleteFunc(found, func(d compare.Difference) bool {
		return isGrownVolume(d) || d.IsStatus() && (grown[d.Object] || len(grown) > 0 && c.isSubject(d.Object))
	})
}
