// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/dynamic"

	"github.com/opdock/opdock/internal/testenv"
)

// boatCRD has status and scale, a default, a rule and a list that server-side apply merges by key. The group is
// the test's own, as CRDs have no namespace.
const boatCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.GROUP
spec:
  group: GROUP
  names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, minimum: 0}
              flag: {type: string, default: none}
              crew:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    rank: {type: string}
            x-kubernetes-validations:
            - rule: "!has(self.replicas) || self.replicas <= 100"
              message: there is room for 100 boats
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
`

func (w *world) boatGroup() string { return w.namespace + ".opdock.dev" }

// installCRD adds the kind Boat and returns its client. It stays when the test ends: the shared control plane
// ends with the tests.
func (w *world) installCRD(t *testing.T) dynamic.ResourceInterface {
	t.Helper()
	definition := &unstructured.Unstructured{}
	try(t, yaml.Unmarshal([]byte(strings.ReplaceAll(boatCRD, "GROUP", w.boatGroup())), &definition.Object))
	crds := w.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	must(crds.Create(t.Context(), definition, metav1.CreateOptions{}))(t)
	boats := w.dynamic.Resource(schema.GroupVersionResource{Group: w.boatGroup(), Version: "v1", Resource: "boats"}).Namespace(w.namespace)
	testenv.Eventually(t, "boats are served", func() error {
		_, err := boats.List(t.Context(), metav1.ListOptions{})
		return err
	})
	return boats
}

func (w *world) boat(name string, replicas int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": w.boatGroup() + "/v1",
		"kind":       "Boat",
		"metadata":   map[string]any{"name": name},
		"spec":       map[string]any{"replicas": replicas},
	}}
}

func numberAt(u *unstructured.Unstructured, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(u.Object, path...)
	return n
}

func TestCustomResourceSchema(t *testing.T) {
	w := newWorld(t)
	boats := w.installCRD(t)
	made := must(boats.Create(t.Context(), w.boat("good", 1), metav1.CreateOptions{}))(t)
	if flag, _, _ := unstructured.NestedString(made.Object, "spec", "flag"); flag != "none" {
		t.Errorf("the default is not set: flag is %q", flag)
	}
	for replicas, complaint := range map[int64]string{-1: "greater than or equal to 0", 101: "there is room for 100 boats"} {
		_, err := boats.Create(t.Context(), w.boat("bad", replicas), metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%d replicas: %v", replicas, err)
		}
	}
}

func TestCustomResourceSubresources(t *testing.T) {
	w := newWorld(t)
	boats := w.installCRD(t)
	made := must(boats.Create(t.Context(), w.boat("fleet", 2), metav1.CreateOptions{}))(t)

	try(t, unstructured.SetNestedMap(made.Object, map[string]any{"replicas": int64(2), "selector": "app=fleet"}, "status"))
	try(t, unstructured.SetNestedField(made.Object, int64(50), "spec", "replicas"))
	updated := must(boats.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}))(t)
	if numberAt(updated, "status", "replicas") != 2 || numberAt(updated, "spec", "replicas") != 2 {
		t.Errorf("writing the status made it %v", updated.Object)
	}
	if updated.GetGeneration() != 1 {
		t.Errorf("writing the status made generation %d", updated.GetGeneration())
	}

	scale := must(boats.Get(t.Context(), "fleet", metav1.GetOptions{}, "scale"))(t)
	if selector, _, _ := unstructured.NestedString(scale.Object, "status", "selector"); scale.GetKind() != "Scale" ||
		numberAt(scale, "spec", "replicas") != 2 || numberAt(scale, "status", "replicas") != 2 || selector != "app=fleet" {
		t.Errorf("its scale is %v", scale.Object)
	}
	try(t, unstructured.SetNestedField(scale.Object, int64(7), "spec", "replicas"))
	must(boats.Update(t.Context(), scale, metav1.UpdateOptions{}, "scale"))(t)
	scaled := must(boats.Get(t.Context(), "fleet", metav1.GetOptions{}))(t)
	if numberAt(scaled, "spec", "replicas") != 7 || scaled.GetGeneration() != 2 {
		t.Errorf("scaled to 7 it is %v", scaled.Object)
	}
}

// TestServerSideApplyOnCustomResources lets two managers own entries of one list, which takes the merge key from
// the CRD's schema.
func TestServerSideApplyOnCustomResources(t *testing.T) {
	w := newWorld(t)
	boats := w.installCRD(t)
	hire := func(manager, sailor, rank string) (*unstructured.Unstructured, error) {
		wanted := w.boat("ship", 0)
		wanted.Object["spec"] = map[string]any{"crew": []any{map[string]any{"name": sailor, "rank": rank}}}
		return boats.Apply(t.Context(), "ship", wanted, metav1.ApplyOptions{FieldManager: manager})
	}
	must(hire("owner", "ada", "captain"))(t)
	both := must(hire("crimp", "bob", "cook"))(t)
	if crew, _, _ := unstructured.NestedSlice(both.Object, "spec", "crew"); len(crew) != 2 {
		t.Errorf("the crew is %v", crew)
	}
	if _, err := hire("crimp", "ada", "cook"); !apierrors.IsConflict(err) {
		t.Errorf("a field that another manager owns is changed: %v", err)
	}
}

func TestServerSideApplyOnBuiltIns(t *testing.T) {
	w := newWorld(t)
	apply := func(manager string, replicas int32, force bool) error {
		wanted := appsv1ac.Deployment("web", w.namespace).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(replicas))
		if manager == "owner" {
			var err error
			if wanted, err = appliedDeployment(w.namespace, replicas); err != nil {
				return err
			}
		}
		_, err := w.AppsV1().Deployments(w.namespace).Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: manager, Force: force})
		return err
	}
	try(t, apply("owner", 1, false))
	first := w.awaitRollout(t, "web")
	try(t, apply("owner", 1, false))
	if again := w.awaitRollout(t, "web"); again.Generation != first.Generation {
		t.Errorf("applying the same again made generation %d of %d", again.Generation, first.Generation)
	}
	if err := apply("rival", 2, false); !apierrors.IsConflict(err) {
		t.Errorf("a field that another manager owns is changed: %v", err)
	}
	try(t, apply("rival", 2, true))
	if scaled := w.awaitRollout(t, "web"); *scaled.Spec.Replicas != 2 {
		t.Errorf("it has %d replicas", *scaled.Spec.Replicas)
	}
}

func appliedDeployment(namespace string, replicas int32) (*appsv1ac.DeploymentApplyConfiguration, error) {
	// By way of the ordinary type, which the other tests use.
	d := deployment("web", replicas)
	d.APIVersion, d.Kind, d.Namespace = "apps/v1", "Deployment", namespace
	wanted := &appsv1ac.DeploymentApplyConfiguration{}
	return wanted, convert(d, wanted)
}

func TestScaleOfDeployment(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 1))
	deployments := w.AppsV1().Deployments(w.namespace)
	scale := must(deployments.GetScale(t.Context(), "web", metav1.GetOptions{}))(t)
	if scale.Spec.Replicas != 1 || scale.Status.Replicas != 1 || scale.Status.Selector != "app=web" {
		t.Errorf("its scale is %+v", scale)
	}
	w.scale(t, "web", 3)
	w.awaitRollout(t, "web")
	patch := []byte(`{"spec":{"replicas":0}}`)
	must(deployments.Patch(t.Context(), "web", types.MergePatchType, patch, metav1.PatchOptions{}, "scale"))(t)
	testenv.Eventually(t, "all pods are gone", func() error { return expect("number of pods", len(w.pods(t, "web")), 0) })
}

func TestValidatingAdmissionPolicyRefuses(t *testing.T) {
	w := newWorld(t)
	policies := w.dynamic.Resource(schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
	})
	bindings := w.dynamic.Resource(schema.GroupVersionResource{
		Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings",
	})
	metadata := map[string]any{"name": w.namespace}
	must(policies.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata,
		"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"configmaps"},
			}}},
			"validations": []any{map[string]any{
				"expression": "!object.metadata.name.startsWith('bad')", "message": "no bad names here",
			}},
		},
	}}, metav1.CreateOptions{}))(t)
	must(bindings.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
		"spec": map[string]any{
			"policyName": w.namespace, "validationActions": []any{"Deny"},
			"matchResources": map[string]any{"namespaceSelector": map[string]any{
				"matchLabels": map[string]any{corev1.LabelMetadataName: w.namespace},
			}},
		},
	}}, metav1.CreateOptions{}))(t)

	attempt := 0
	testenv.Eventually(t, "the policy is in force", func() error {
		attempt++
		_, err := w.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), configMap(fmt.Sprintf("bad-%d", attempt)), metav1.CreateOptions{})
		if err == nil {
			return errors.New("a bad name is accepted")
		}
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "no bad names here") {
			t.Fatalf("a bad name gets %v", err)
		}
		return nil
	})
	w.createConfigMap(t, configMap("good"))
}
