// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

func TestOnlyTheControllerIsWoken(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := robotv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	group := robotv1.GroupVersion.Group
	for name, test := range map[string]struct {
		owner metav1.OwnerReference
		want  bool
	}{
		"its controller":        {metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Robot", Controller: ptr.To(true)}, true},
		"in another version":    {metav1.OwnerReference{APIVersion: group + "/v2", Kind: "Robot", Controller: ptr.To(true)}, true},
		"an owner, and no more": {metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Robot"}, false},
		"another kind":          {metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Other", Controller: ptr.To(true)}, false},
		"another group":         {metav1.OwnerReference{APIVersion: "other/v1", Kind: "Robot", Controller: ptr.To(true)}, false},
		"the core group":        {metav1.OwnerReference{APIVersion: "v1", Kind: "Robot", Controller: ptr.To(true)}, false},
	} {
		test.owner.Name = "r"
		child := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", OwnerReferences: []metav1.OwnerReference{test.owner}}}
		got := controllerOf(&robotv1.Robot{}, scheme)(t.Context(), child)
		if (len(got) == 1) != test.want || test.want && got[0].String() != "n/r" {
			t.Errorf("%s: %v", name, got)
		}
	}
}
