// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

// Objects that were stored before a rule can still be labelled, reported about and deleted. A change of their spec is accepted
// if the rule is about another part of it, and is refused with the words of the rule otherwise.
func TestObjectsOlderThanTheRules(t *testing.T) {
	s := realServer(t)
	namespace := clustertest.Namespace(t)
	const robotComponent = "resource: {apiVersion: robot.llleon.io/v1, kind: Robot}"
	tests := []struct {
		name, crd, spec string
		// harmless are patches of the spec that are accepted, refused is one that is not, and correction makes the spec valid.
		harmless, refused, message, correction string
	}{
		{
			"restricted", "app.example.com_appservices", `{image: a, securityProfile: Restricted, volumes: [{name: a, hostPath: {path: /}}]}`,
			"", `{"size": 3}`, "securityProfile Restricted forbids hostPath", `{"securityProfile": "RuntimeDefault", "size": 3}`,
		},
		{
			"labelled", "app.example.com_appservices", `{image: a, podMetadata: {labels: {app.kubernetes.io/name: b}}}`,
			`{"size": 3, "image": "b"}`, `{"podMetadata": {"labels": {"more": "c"}}}`, "these labels are reserved for controllers",
			`{"podMetadata": {"labels": {"app.kubernetes.io/name": null}}}`,
		},
		{
			"ports", "app.example.com_appservices", `{image: a, ports: [{name: a, port: 80}, {name: a, port: 81}]}`,
			`{"size": 3}`, `{"ports": [{"name": "a", "port": 80}, {"name": "a", "port": 82}]}`, "port names must be unique", `{"ports": null}`,
		},
		{
			"host", "robot.llleon.io_robots", `{securityProfile: Restricted, template: {spec: {hostNetwork: true, containers: [{name: a, image: a}]}}}`,
			"", `{"replicas": 3}`, "securityProfile Restricted forbids hostNetwork", `{"securityProfile": "AsWritten", "replicas": 3}`,
		},
		{
			"cycle", "kanggege.k8sio.com_kapps", "{components: [{name: a, dependsOn: [b], " + robotComponent + "}, {name: b, dependsOn: [a], " + robotComponent + "}]}",
			`{"suspend": true}`, `{"components": [{"name": "a", "dependsOn": ["b"], "resource": {"apiVersion": "robot.llleon.io/v1", "kind": "Robot"}}]}`,
			"dependsOn names", `{"components": [{"name": "a", "resource": {"apiVersion": "robot.llleon.io/v1", "kind": "Robot"}}]}`,
		},
	}
	older := map[string]*olderKind{}
	for _, test := range tests {
		if older[test.crd] == nil {
			older[test.crd] = s.installOlder(t, test.crd, namespace)
		}
		older[test.crd].create(t, test.name, test.spec)
	}
	for _, kind := range older {
		kind.upgrade(t)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kind := older[test.crd]
			kind.mustPatch(t, test.name, `{"metadata": {"labels": {"a": "b"}, "finalizers": ["example.com/a"]}}`)
			kind.mustPatch(t, test.name, `{"status": {"observedGeneration": 1}}`, "status")
			kind.mustPatch(t, test.name, `{"metadata": {"finalizers": null}}`)
			if test.harmless != "" {
				kind.mustPatch(t, test.name, `{"spec": `+test.harmless+`}`)
			}
			if err := kind.patch(t, test.name, `{"spec": `+test.refused+`}`); err == nil || !strings.Contains(err.Error(), test.message) {
				t.Errorf("%s: %v", test.refused, err)
			}
			kind.mustPatch(t, test.name, `{"spec": `+test.correction+`}`)
			if err := kind.Delete(t.Context(), test.name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// olderKind is a copy of a kind in a group of its own, so that its rules can be added while objects exist, as by an upgrade.
type olderKind struct {
	dynamic.ResourceInterface
	server server
	// crd has all rules, and spec is one that breaks them.
	crd  *unstructured.Unstructured
	spec string
}

// installOlder installs a copy of a CRD without its rules.
func (s server) installOlder(t *testing.T, file, namespace string) *olderKind {
	t.Helper()
	crd := mustRead(t, filepath.Join(crdFolder, file+".yaml"))[0]
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	// As unique as the namespace, so that a second test does not meet a CRD that is being deleted.
	group := namespace + ".example.com"
	if err := unstructured.SetNestedField(crd.Object, group, "spec", "group"); err != nil {
		t.Fatal(err)
	}
	crd.SetName(plural + "." + group)
	lenient := crd.DeepCopy()
	removeRules(lenient.Object)
	if _, err := s.Resource(crdResource).Create(t.Context(), lenient, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Resource(crdResource).Delete(context.WithoutCancel(t.Context()), crd.GetName(), metav1.DeleteOptions{})
	})
	if err := s.waitServed(crd); err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	return &olderKind{ResourceInterface: s.Resource(resource).Namespace(namespace), server: s, crd: crd}
}

func removeRules(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "x-kubernetes-validations")
		for _, below := range value {
			removeRules(below)
		}
	case []any:
		for _, below := range value {
			removeRules(below)
		}
	}
}

func (k *olderKind) create(t *testing.T, name, spec string) {
	t.Helper()
	k.spec = spec
	testenv.Eventually(t, "an object is created that rules forbid", func() error { return k.try(t, name, spec) })
}

func (k *olderKind) try(t *testing.T, name, spec string, dryRun ...string) error {
	t.Helper()
	kind, _, _ := unstructured.NestedString(k.crd.Object, "spec", "names", "kind")
	group, _, _ := unstructured.NestedString(k.crd.Object, "spec", "group")
	object, err := parse(fmt.Sprintf("{apiVersion: %s/v1, kind: %s, metadata: {name: %s}, spec: %s}", group, kind, name, spec))
	if err != nil {
		t.Fatal(err)
	}
	_, err = k.Create(t.Context(), object, metav1.CreateOptions{DryRun: dryRun})
	return err
}

// upgrade adds the rules, and returns when the server enforces them.
func (k *olderKind) upgrade(t *testing.T) {
	t.Helper()
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := k.server.Resource(crdResource).Get(t.Context(), k.crd.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		live.Object["spec"] = k.crd.Object["spec"]
		_, err = k.server.Resource(crdResource).Update(t.Context(), live, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the rules are enforced", func() bool { return apierrors.IsInvalid(k.try(t, "new", k.spec, metav1.DryRunAll)) })
}

func (k *olderKind) patch(t *testing.T, name, patch string, subresource ...string) error {
	t.Helper()
	_, err := k.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresource...)
	return err
}

func (k *olderKind) mustPatch(t *testing.T, name, patch string, subresource ...string) {
	t.Helper()
	if err := k.patch(t, name, patch, subresource...); err != nil {
		t.Errorf("%s: %v", patch, err)
	}
}
