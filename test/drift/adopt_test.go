// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// An owner that was deleted with --cascade=orphan and is created again, as after a restore from a backup, gets its children
// back as they are.
func TestOrphansAreAdopted(t *testing.T) {
	config := fleettest.Config(t)
	for _, owner := range owners {
		t.Run(owner.name, func(t *testing.T) {
			t.Parallel()
			s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			fleettest.Run(t, config, manager.Options{Namespaces: []string{s.namespace}})
			s.create(owner.manifest)
			s.learn(strings.Fields(owner.children))
			for _, child := range s.children {
				awaitGarbageCollector(t, s.Client, child)
			}
			if err := s.Delete(t.Context(), s.owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
				t.Fatal(err)
			}
			fleettest.AwaitGone(t, s.Client, s.owner.DeepCopy())
			s.create(owner.manifest)
			for _, before := range s.children {
				testenv.Await(t, func() string {
					after := before.DeepCopy()
					if err := s.Get(t.Context(), client.ObjectKeyFromObject(after), after); err != nil {
						return err.Error()
					}
					switch {
					case after.GetUID() != before.GetUID():
						t.Fatalf("%s %s was recreated", before.GetKind(), before.GetName())
					case !metav1.IsControlledBy(after, s.owner):
						return before.GetKind() + " " + before.GetName() + " was not adopted"
					}
					return s.notReady()
				})
			}
		})
	}
}

// awaitGarbageCollector waits until the garbage collector, which has to release the children, watches objects of a child's
// kind. After a CRD is installed that takes up to half a minute.
func awaitGarbageCollector(t *testing.T, c client.Client, child *unstructured.Unstructured) {
	t.Helper()
	probe := child.DeepCopy()
	probe.Object = map[string]any{"apiVersion": child.GetAPIVersion(), "kind": child.GetKind(), "spec": child.Object["spec"], "data": child.Object["data"]}
	if child.GetKind() == "Service" {
		probe.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	}
	if child.GetKind() == "Deployment" {
		_ = unstructured.SetNestedField(probe.Object, int64(0), "spec", "replicas")
	}
	probe.SetNamespace(child.GetNamespace())
	probe.SetName("probe-" + strings.ToLower(child.GetKind()))
	probe.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "00000000-0000-0000-0000-000000000000"}})
	if err := c.Create(t.Context(), probe); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating a probe for the garbage collector: %v", err)
	}
	fleettest.AwaitGone(t, c, probe)
}

// An object that has the name of a child and nothing else in common with it is left alone, unless the owner is asked to
// take it over. One that has a controller is never touched.
func TestAdoptionOnRequest(t *testing.T) {
	config := fleettest.Config(t)
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	fleettest.Run(t, config, manager.Options{Namespaces: []string{s.namespace}})
	service := func(name string, owners ...metav1.OwnerReference) *corev1.Service {
		object := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, OwnerReferences: owners}}
		object.Spec.Ports = []corev1.ServicePort{{Port: 9999}}
		if err := s.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	existing := service("shop")
	s.submit(strings.Replace(owners[0].manifest, "size: 2", "size: 1", 1))
	testenv.Await(t, func() string {
		if reason := s.reason(); reason != "ErrResourceExists" {
			return "the reason is " + reason
		}
		return ""
	})
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"opdock.dev/adopt": "true"}}}`))
	if err := s.Patch(t.Context(), s.owner.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
	testenv.Await(t, s.notReady)
	after := &corev1.Service{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(existing), after); err != nil {
		t.Fatal(err)
	}
	if after.UID != existing.UID || !metav1.IsControlledBy(after, s.owner) {
		t.Errorf("it is not the same, or not adopted: %+v", after.ObjectMeta)
	}
	if slices.ContainsFunc(after.Spec.Ports, func(port corev1.ServicePort) bool { return port.Port == 9999 }) {
		t.Errorf("it still has the port of before: %+v", after.Spec.Ports)
	}

	controlled := service("other", metav1.OwnerReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: "somebody", UID: s.configMap("somebody").UID, Controller: new(true),
	})
	s.submit(strings.NewReplacer("name: shop", "name: other, annotations: {opdock.dev/adopt: 'true'}", "shop.example.com", "other.example.com").
		Replace(owners[0].manifest))
	testenv.Await(t, func() string {
		if reason := s.reason(); reason != "ErrResourceExists" {
			return "the reason is " + reason
		}
		return ""
	})
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(controlled), after); err != nil || after.ResourceVersion != controlled.ResourceVersion {
		t.Errorf("it was touched: %v, %+v", err, after.ObjectMeta)
	}
}

func (s *stage) configMap(name string) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := s.Create(s.Context(), object); err != nil {
		s.Fatal(err)
	}
	return object
}

// A selector is immutable, so a Deployment with another one cannot be adopted. The attempt must not make it a child later.
func TestARefusedAdoptionLeavesNoTrace(t *testing.T) {
	s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
	s.manage()
	foreign := fleettest.Create(t, s.Client, s.namespace, `
metadata: {name: shop}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: x, image: x}]}}
`, &appsv1.Deployment{})
	annotate := func(value string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"opdock.dev/adopt": `+value+`}}}`))
		if err := s.Patch(t.Context(), s.owner.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
	}
	awaitReason := func(want string) {
		t.Helper()
		testenv.Await(t, func() string {
			if reason := s.reason(); reason != want {
				return "the reason is " + reason + ": " + s.message()
			}
			return ""
		})
	}
	s.submit(strings.Replace(owners[0].manifest, "size: 2", "size: 1", 1))
	awaitReason("ErrResourceExists")
	annotate(`"true"`)
	awaitReason("Invalid")
	annotate("null")
	awaitReason("ErrResourceExists")
	after := &appsv1.Deployment{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(foreign), after); err != nil {
		t.Fatal(err)
	}
	if after.Generation != foreign.Generation || slices.ContainsFunc(after.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return strings.HasPrefix(entry.Manager, "opdock-")
	}) {
		t.Errorf("it was changed: %+v", after.ObjectMeta)
	}
}
