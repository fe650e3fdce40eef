// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

// The API server gives the default class to new Ingresses only, so to revert another one would leave none. The class is for the
// whole cluster, so no other test may run at the same time.
func TestTheDefaultClassOfAnIngress(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{
		Name: "standard", Annotations: map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"},
	}}
	class.Spec.Controller = "example.com/ingress"
	if err := s.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Delete(context.Background(), class); err != nil {
			t.Error(err)
		}
	})
	// Admission reads the classes from a cache.
	testenv.Await(t, func() string {
		probe := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "probe"}}
		probe.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: "probe", Port: networkingv1.ServiceBackendPort{Number: 80},
		}}
		if err := s.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return err.Error()
		}
		if ptr.Deref(probe.Spec.IngressClassName, "") != class.Name {
			return "there is no default class yet"
		}
		return ""
	})
	s.manage()
	s.create(s.exposed("ports: [{name: http, port: 80}], ingress: {rules: [{host: shop.example.com}]}", 0))
	await := func(class string) {
		t.Helper()
		testenv.Await(t, func() string {
			live := &networkingv1.Ingress{}
			if err := s.Get(t.Context(), types.NamespacedName{Namespace: s.namespace, Name: "shop"}, live); err != nil {
				return err.Error()
			}
			if got := ptr.Deref(live.Spec.IngressClassName, ""); got != class || !metav1.IsControlledBy(live, s.owner) {
				return "the class is " + got + ": " + s.message()
			}
			return s.notReady()
		})
	}
	edit := func(edits ...string) {
		t.Helper()
		for _, one := range edits {
			live := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}}
			if err := s.Patch(t.Context(), live, client.RawPatch(types.MergePatchType, []byte(one)), client.FieldOwner("editor")); err != nil {
				t.Fatal(err)
			}
		}
	}
	const unmanaged, orphaned, other = `{"metadata": {"managedFields": [{}]}}`, `{"metadata": {"ownerReferences": null}}`, `{"spec": {"ingressClassName": "other"}}`
	await(class.Name)
	edit(unmanaged, orphaned)
	await(class.Name)
	edit(other, orphaned)
	await("other")
	if found := s.events("DriftCorrected", "ingressClassName"); len(found) > 0 {
		t.Errorf("it is reported as restored: %s", found[0].Note)
	}
	named := []byte(`{"spec": {"ingress": {"className": "special"}}}`)
	if err := s.Patch(t.Context(), s.owner, client.RawPatch(types.MergePatchType, named), client.FieldOwner("editor")); err != nil {
		t.Fatal(err)
	}
	await("special")
	edit(other)
	await("special")
}
