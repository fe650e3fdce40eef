// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"bytes"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// legacyPrefix begins the names of the annotations that stand for fields of the spec in an older version of the API.
const legacyPrefix = "autoscaling.alpha.kubernetes.io/"

// legacyFields are the fields of a HorizontalPodAutoscaler that autoscaling/v1 does not have. The server makes them from
// annotations, but records the annotations.
var legacyFields = map[string]string{legacyPrefix + "behavior": "behavior", legacyPrefix + "metrics": "metrics"}

// hasLegacySpec reports whether an entry of the managed fields may have annotations that stand for fields of the spec.
func hasLegacySpec(entry *metav1.ManagedFieldsEntry) bool {
	return entry.APIVersion == autoscalingv1.SchemeGroupVersion.String() && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:`+legacyPrefix))
}

// legacySpec returns the fields of the spec that an entry has set by annotations, and the annotations: both have to be taken
// over before the fields can be removed.
func legacySpec(entry *metav1.ManagedFieldsEntry, fields *fieldpath.Set) *fieldpath.Set {
	found := &fieldpath.Set{}
	if !hasLegacySpec(entry) {
		return found
	}
	for annotation, field := range legacyFields {
		if path := fieldpath.MakePathOrDie("metadata", "annotations", annotation); fields.Has(path) {
			found.Insert(path)
			found.Insert(fieldpath.MakePathOrDie("spec", field))
		}
	}
	return found
}
