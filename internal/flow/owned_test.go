// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Each key costs memory, so an index holds only what its kind looks for.
func TestOwnedKeys(t *testing.T) {
	of := func(kind string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: "one", UID: "1234", Controller: ptr.To(true)}}
	}
	for _, test := range []struct {
		name          string
		owners        []metav1.OwnerReference
		managed, kind string
		want          []string
	}{
		{"a child", of("Robot"), ManagedBy, "robot", []string{"1234"}},
		{"a child that has lost its labels", of("Robot"), "", "", []string{"1234"}},
		{"a child of another kind", of("AppService"), ManagedBy, "appservice", nil},
		{"a child that has another kind's labels", of("Robot"), ManagedBy, "appservice", []string{"1234"}},
		{"a child with another kind in its reference", of("Ship"), ManagedBy, "robot", []string{"1234"}},
		{"an orphan", nil, ManagedBy, "robot", []string{orphanKey("robot", "one")}},
		{"an orphan of another kind", nil, ManagedBy, "appservice", nil},
		{"a child of another manager", nil, "helm", "robot", nil},
	} {
		object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			OwnerReferences: test.owners, Labels: map[string]string{LabelManagedBy: test.managed, LabelKind: test.kind, LabelInstance: "one"},
		}}
		if got := OwnedKeys("Robot")(object); !slices.Equal(got, test.want) {
			t.Errorf("%s has the keys %v, want %v", test.name, got, test.want)
		}
	}
}
