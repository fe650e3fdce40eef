// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/opdock/opdock/internal/crdspec"
)

// servedSamples leaves out samples without a name, and those of kinds that the cluster does not serve, and says so. Projects have
// them: configuration files of the operator itself look like objects, and other operators' objects need other operators. External
// are definitions from other modules; they are asked for only if something is missing.
func servedSamples(samples, definitions []*unstructured.Unstructured, external func() []*unstructured.Unstructured, say func(string)) []*unstructured.Unstructured {
	isServed := func(sample *unstructured.Unstructured, by []*unstructured.Unstructured) bool {
		kind := sample.GroupVersionKind()
		return slices.ContainsFunc(by, func(definition *unstructured.Unstructured) bool {
			return crdspec.Of(definition).GroupKind() == kind.GroupKind()
		})
	}
	var others []*unstructured.Unstructured
	asked := false
	return slices.DeleteFunc(slices.Clone(samples), func(sample *unstructured.Unstructured) bool {
		if sample.GetName() == "" {
			say(fmt.Sprintf("a %s (%s) is left out of the samples: it has no metadata.name, so later steps could not name it", sample.GetKind(), sample.GetAPIVersion()))
			return true
		}
		if isServed(sample, definitions) || scheme.Scheme.Recognizes(sample.GroupVersionKind()) {
			return false
		}
		if !asked {
			asked, others = true, external()
		}
		if isServed(sample, others) {
			return false
		}
		say(fmt.Sprintf("%s %s is left out of the samples: neither Kubernetes nor a CRD of the project has its kind (%s)", sample.GetKind(), sample.GetName(), sample.GetAPIVersion()))
		return true
	})
}
