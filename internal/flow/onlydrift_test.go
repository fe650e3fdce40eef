// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

// A child that has lost its owner reference has drifted, if it has the hash of its configuration and our labels.
func TestAnOrphanHasOnlyDrifted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := robotv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pass := &Pass{owner: robot(), client: fake.NewClientBuilder().WithScheme(scheme).Build(), fieldOwner: "us", shapes: (&shapes{}).of(scheme)}
	configuration := map[string]any{"apiVersion": robotv1.GroupVersion.String(), "kind": "Robot", "metadata": map[string]any{"name": "child"}, "spec": map[string]any{}}
	desired, err := pass.complete(configuration)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		edit func(*robotv1.Robot)
		want bool
	}{
		{"without an owner reference", func(*robotv1.Robot) {}, true},
		{"another configuration", func(r *robotv1.Robot) { r.Annotations[AppliedAnnotation] = "other" }, false},
		{"other labels", func(r *robotv1.Robot) { r.Labels = nil }, false},
		{"another controller", func(r *robotv1.Robot) {
			r.OwnerReferences = []metav1.OwnerReference{{UID: "other", Controller: new(true)}}
		}, false},
		{"on its way out", func(r *robotv1.Robot) { r.DeletionTimestamp = new(metav1.Now()) }, false},
		{"it does not exist", func(r *robotv1.Robot) { r.UID = "" }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			live := &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "child", UID: "c", Labels: pass.labels(), Annotations: map[string]string{AppliedAnnotation: desired.hash},
			}}
			test.edit(live)
			if got, err := pass.HasOnlyDrifted(live, configuration); got != test.want || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// Without the hash, the values of the fields that are still ours tell whether the configuration has changed. A new one must
// wait, even if another writer has removed the hash.
func TestAChildWithoutTheHashHasOnlyDrifted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := robotv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pass := &Pass{owner: robot(), client: fake.NewClientBuilder().WithScheme(scheme).Build(), fieldOwner: "us", labelKind: "robot", shapes: (&shapes{}).of(scheme)}
	configuration := map[string]any{
		"apiVersion": robotv1.GroupVersion.String(), "kind": "Robot", "metadata": map[string]any{"name": "child"},
		"spec": map[string]any{"image": "a", "replicas": 2},
	}
	const ours, without, theirs = `{"f:spec":{"f:image":{},"f:replicas":{}}}`, `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:suspend":{},"f:image":{}}}`
	for _, test := range []struct {
		name, fields string
		edit         func(*robotv1.Robot)
		want         bool
	}{
		{"another writer has added a field", ours, func(r *robotv1.Robot) { r.Spec.Suspend = true }, true},
		{"another writer has changed a field", without, func(r *robotv1.Robot) { r.Spec.Image = "evil" }, true},
		{"another writer has removed the owner reference", ours, func(r *robotv1.Robot) { r.OwnerReferences = nil }, true},
		{"a new value waits", ours, func(r *robotv1.Robot) { r.Spec.Image = "old" }, false},
		{"a new field waits", without, func(r *robotv1.Robot) { r.Spec.Image = "" }, false},
		{"the end of a field waits", `{"f:spec":{"f:image":{},"f:replicas":{},"f:deploymentName":{}}}`, func(r *robotv1.Robot) { r.Spec.DeploymentName = "d" }, false},
		{"nothing is ours", `{}`, func(r *robotv1.Robot) { r.ManagedFields = r.ManagedFields[1:] }, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			entry := func(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
				return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}
			}
			live := &robotv1.Robot{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "n", Name: "child", UID: "c", Labels: pass.labels(),
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: robotv1.GroupVersion.String(), Kind: "Robot", Name: robot().Name, UID: robot().UID, Controller: new(true), BlockOwnerDeletion: new(true),
					}},
					ManagedFields: []metav1.ManagedFieldsEntry{entry("us", "Apply", test.fields), entry("kubectl", "Update", theirs)},
				},
				Spec: robotv1.RobotSpec{Image: "a", Replicas: new(int32(2))},
			}
			test.edit(live)
			if got, err := pass.HasOnlyDrifted(live, configuration); got != test.want || err != nil {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}
