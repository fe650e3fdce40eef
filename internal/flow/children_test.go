// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

func TestDeletionHasConditions(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := robotv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	owner := robot()
	child := &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "child", UID: "c", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: robotv1.GroupVersion.String(), Kind: "Robot", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true),
	}}}}
	var got metav1.DeleteOptions
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(child).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			got = *(&client.DeleteOptions{}).ApplyOptions(options).AsDeleteOptions()
			return nil
		},
	}).Build()
	pass := &Pass{owner: owner, client: c}
	for name, options := range map[string][]client.DeleteOption{
		"":  nil,
		"7": {client.Preconditions{ResourceVersion: ptr.To("7")}, client.PropagationPolicy(metav1.DeletePropagationForeground)},
	} {
		named := &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{Name: "child"}}
		if gone, err := pass.Delete(t.Context(), named, options...); gone || err != nil {
			t.Fatal(gone, err)
		}
		if got.Preconditions == nil || ptr.Deref(got.Preconditions.UID, "") != "c" || ptr.Deref(got.Preconditions.ResourceVersion, "") != name {
			t.Errorf("with version %q: %+v", name, got.Preconditions)
		}
		if (got.PropagationPolicy != nil) != (name != "") {
			t.Errorf("with version %q: %v", name, got.PropagationPolicy)
		}
	}
}
