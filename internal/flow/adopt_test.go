// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

// One request can remove the owner reference and any of the labels.
func TestWhichObjectsAreAdopted(t *testing.T) {
	entry := func(manager string) []metav1.ManagedFieldsEntry {
		fields := &metav1.FieldsV1{}
		fields.SetRawBytes([]byte(`{"f:spec":{"f:replicas":{}}}`))
		return []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: fields}}
	}
	ours, others := entry("opdock-robot"), entry("kubectl")
	labels := func(pairs ...string) map[string]string {
		result := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			result[pairs[i]] = pairs[i+1]
		}
		return result
	}
	for _, test := range []struct {
		name   string
		labels map[string]string
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		{"all labels", labels(LabelManagedBy, ManagedBy, LabelKind, "robot", LabelInstance, "r"), others, true},
		{"no labels", nil, ours, true},
		{"no labels, and nothing that we have set", nil, others, false},
		{"without managed-by", labels(LabelKind, "robot", LabelInstance, "r"), ours, true},
		{"without managed-by, and nothing that we have set", labels(LabelKind, "robot", LabelInstance, "r"), others, false},
		{"without the kind", labels(LabelManagedBy, ManagedBy, LabelInstance, "r"), ours, true},
		{"without the instance", labels(LabelManagedBy, ManagedBy, LabelKind, "robot"), ours, true},
		{"only managed-by", labels(LabelManagedBy, ManagedBy), ours, true},
		{"the name of a user's application", labels(LabelKind, "web"), ours, true},
		{"the name and the instance of a user's application", labels(LabelKind, "web", LabelInstance, "web-1"), ours, true},
		{"another owner", labels(LabelManagedBy, ManagedBy, LabelKind, "robot", LabelInstance, "other"), ours, false},
		{"another owner, without the kind", labels(LabelManagedBy, ManagedBy, LabelInstance, "other"), ours, false},
		{"another owner, without managed-by", labels(LabelKind, "robot", LabelInstance, "other"), ours, false},
		{"another kind of owner", labels(LabelManagedBy, ManagedBy, LabelKind, "appservice", LabelInstance, "r"), ours, false},
		{"another kind of owner, without the instance", labels(LabelManagedBy, ManagedBy, LabelKind, "appservice"), ours, false},
		{"another tool", labels(LabelManagedBy, "Helm"), ours, false},
	} {
		object := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "d", Labels: test.labels, ManagedFields: test.fields}}
		pass := &Pass{owner: robot(), fieldOwner: "opdock-robot", labelKind: "robot"}
		if got := pass.isAdoptable(object); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
		object.OwnerReferences = []metav1.OwnerReference{{UID: "x", Controller: ptr.To(true)}}
		if pass.isAdoptable(object) {
			t.Errorf("%s: the object of another controller is adopted", test.name)
		}
	}
}

// The server refuses the configuration for an object that is to be adopted. Nothing of the object may change then, or it would
// count as a former child, which is adopted without the annotation.
func TestAFailedAdoptionChangesNothing(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{robotv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	owner := robot()
	owner.Annotations = map[string]string{AdoptAnnotation: "true"}
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "child", UID: "c", ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:externalName":{}}}`),
		}}},
		Spec: corev1.ServiceSpec{ExternalName: "elsewhere"},
	}
	var rehearsals, writes int
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(owner, foreign).WithReturnManagedFields().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			isRehearsal := len((&client.PatchOptions{}).ApplyOptions(options).DryRun) > 0
			if isRehearsal {
				rehearsals++
			} else {
				writes++
			}
			if isRehearsal || patch.Type() == "application/apply-patch+yaml" {
				return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "child", nil)
			}
			return c.Patch(ctx, object, patch, options...)
		},
	}).Build()
	pass := &Pass{
		owner: owner, fieldOwner: "opdock-robot", labelKind: "robot", own: &ownWrites{}, contests: &contests{},
		shapes: new(shapes).of(scheme), client: server, reader: server,
	}
	err := pass.Apply(t.Context(), &corev1.Service{}, map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "child"}, "spec": map[string]any{"type": "ClusterIP"},
	})
	if Reason(err) != ReasonInvalid || rehearsals != 1 || writes != 0 {
		t.Errorf("the outcome is %v, after %d rehearsals and %d writes", err, rehearsals, writes)
	}
}
