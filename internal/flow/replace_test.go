// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Admission sets the default class of an Ingress, and no manager owns it.
func TestClassesThatAnApplyCannotRevert(t *testing.T) {
	for name, test := range map[string]struct {
		live, fields, wanted string
		stuck                bool
	}{
		"by default":                           {"standard", `{"f:spec":{"f:rules":{}}}`, "", false},
		"there is none":                        {"", `{"f:spec":{"f:rules":{}}}`, "", false},
		"set by another writer, or by us once": {"other", `{"f:spec":{"f:ingressClassName":{}}}`, "", true},
		"the spec names one":                   {"other", `{"f:spec":{"f:ingressClassName":{}}}`, "standard", false},
	} {
		live := &networkingv1.Ingress{}
		live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Update", FieldsV1: metav1.NewFieldsV1(test.fields)}}
		if test.live != "" {
			live.Spec.IngressClassName = &test.live
		}
		spec := map[string]any{}
		if test.wanted != "" {
			spec["ingressClassName"] = test.wanted
		}
		if err := stuck(live, &desired{content: map[string]any{"spec": spec}}); (err != nil) != test.stuck {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
