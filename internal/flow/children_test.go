// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
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

// The cache may not know yet that a child was deleted and that another writer has created an object with its name.
func TestAnObjectThatReplacedAChildIsNotChanged(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{robotv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	owner := robot()
	configuration := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "child"}, "data": map[string]any{"a": "b"},
	}
	for name, edit := range map[string]func(*corev1.ConfigMap){
		"another object":                       func(c *corev1.ConfigMap) { c.UID, c.OwnerReferences = "other", nil },
		"another object of the owner":          func(c *corev1.ConfigMap) { c.UID = "other" },
		"the same one without the controller":  func(c *corev1.ConfigMap) { c.OwnerReferences = nil },
		"the same one with another controller": func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "other" },
		"the child":                            nil,
	} {
		cached := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace, Name: "child", UID: "child", Labels: map[string]string{LabelManagedBy: ManagedBy},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: robotv1.GroupVersion.String(), Kind: "Robot", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true),
			}},
		}}
		pass := &Pass{
			owner: owner, fieldOwner: "opdock-robot", labelKind: "robot", own: &ownWrites{}, contests: &contests{},
			shapes: new(shapes).of(scheme), client: fake.NewClientBuilder().WithScheme(scheme).Build(),
		}
		desired, err := pass.complete(configuration)
		if err != nil {
			t.Fatal(err)
		}
		cached.Annotations = map[string]string{AppliedAnnotation: desired.hash}
		live := cached.DeepCopy()
		if edit != nil {
			edit(live)
		}
		writes := 0
		pass.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(cached).WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				writes++
				return nil
			},
		}).Build()
		pass.reader = fake.NewClientBuilder().WithScheme(scheme).WithObjects(live).Build()
		err = pass.Apply(t.Context(), &corev1.ConfigMap{}, configuration)
		if isChanged := writes > 0; isChanged != (edit == nil) || IsWaiting(err) == isChanged {
			t.Errorf("%s: there were %d writes, and the outcome is %v", name, writes, err)
		}
	}
}

// Without the hash of its configuration, a child has drifted all the same.
func TestAnEditOfTheHashIsDrift(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{robotv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	configuration := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "child"}, "data": map[string]any{"a": "b"},
	}
	const (
		rest   = `"f:data":{"f:a":{}},"f:metadata":{"f:labels":{"f:app.kubernetes.io/managed-by":{}}`
		edited = `{` + rest + `}}`
		intact = `{` + rest + `,"f:annotations":{"f:opdock.dev/applied":{}}}}`
	)
	for name, test := range map[string]struct{ fields, hash, want string }{
		"the hash was edited":           {edited, "theirs", "metadata.annotations.opdock.dev/applied was changed by kubectl"},
		"the hash was removed":          {edited, "", "metadata.annotations.opdock.dev/applied was changed by kubectl"},
		"the configuration has changed": {intact, "ours", ""},
	} {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "child", UID: "child", Labels: map[string]string{LabelManagedBy: ManagedBy}, Annotations: map[string]string{AppliedAnnotation: test.hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Robot", UID: robot().UID, Controller: ptr.To(true)}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "opdock-robot", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(test.fields)},
				{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(
					`{"f:metadata":{"f:annotations":{"f:opdock.dev/applied":{}}}}`)},
			},
		}}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(child).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
				child.DeepCopyInto(object.(*corev1.ConfigMap))
				return nil
			},
		}).Build()
		pass := &Pass{
			owner: robot(), fieldOwner: "opdock-robot", labelKind: "robot", own: &ownWrites{}, contests: &contests{},
			shapes: new(shapes).of(scheme), client: c, reader: c,
		}
		if err := pass.Apply(t.Context(), &corev1.ConfigMap{}, configuration); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(pass.repairs, "; "); (got != "") != (test.want != "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: the corrections are %q, and the changes %v", name, got, pass.changes)
		}
	}
}
