// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/testenv"
)

// The whole life of a project on a server.
func TestAProjectComesAndGoes(t *testing.T) {
	s := server(t)
	manifests := fixture(t, "single")
	ordered := Order(manifests)

	if got := applied(t, s, manifests, Options{DryRun: true}); got != all(Created, ordered) {
		t.Errorf("the dry run says %s", got)
	}
	if exists(t, s, ordered[0]) || exists(t, s, ordered[1]) {
		t.Error("the dry run has made something")
	}
	if got := deployed(t, s, manifests, Options{}); got != all(Created, ordered) {
		t.Errorf("the first time: %s", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.AwaitReady(ctx, workloads(manifests), ""); err != nil {
		t.Fatal(err)
	}
	if got := applied(t, s, manifests, Options{}); got != all(Unchanged, ordered) {
		t.Errorf("the second time: %s", got)
	}
	changed, err := project.WithImage(manifests, "team/harbour:v2")
	if err != nil {
		t.Fatal(err)
	}
	expected := strings.Replace(all(Unchanged, ordered), "Deployment unchanged", "Deployment configured", 1)
	if got := applied(t, s, changed, Options{DryRun: true}); got != expected {
		t.Errorf("a dry run of another image: %s", got)
	}
	if got := applied(t, s, changed, Options{}); got != expected {
		t.Errorf("another image: %s", got)
	}
	if err := s.AwaitReady(ctx, workloads(manifests), ""); err != nil {
		t.Error(err)
	}

	reversed := orderOfDeletion(manifests)
	for i, test := range []struct {
		o        Options
		expected Action
	}{{Options{DryRun: true}, Deleted}, {Options{}, Deleted}, {Options{}, Absent}} {
		outcomes, err := s.Delete(ctx, manifests, test.o)
		if err != nil {
			t.Fatal(err)
		}
		if got := actions(outcomes); got != all(test.expected, reversed) {
			t.Errorf("deletion %d: %s", i, got)
		}
		if test.o.DryRun && !exists(t, s, ordered[0]) {
			t.Error("the dry run has deleted something")
		}
	}
	for _, object := range manifests {
		if exists(t, s, object) {
			t.Errorf("%s is still there", title(object))
		}
	}
}

const ship = `apiVersion: sea.example.com/v1
kind: Ship
metadata:
  name: argo
  namespace: default
  finalizers: [example.com/ashore]
spec: {size: 50}`

func TestWhatIsLeftOfAKind(t *testing.T) {
	s := server(t)
	var definitions []*unstructured.Unstructured
	for _, object := range fixture(t, "single") {
		if isCRD(object) {
			definitions = append(definitions, object)
		}
	}
	if left, err := s.Instances(t.Context(), definitions); err != nil || len(left) != 0 {
		t.Errorf("before there is a kind: %v, %v", left, err)
	}
	deployed(t, s, definitions, Options{})
	if left, err := s.Instances(t.Context(), definitions); err != nil || len(left) != 0 {
		t.Errorf("before there is an object: %v, %v", left, err)
	}
	argo := parse(t, ship)[0]
	// Applying needs no more than the return of Apply: the kind is served by then.
	if got := applied(t, s, []*unstructured.Unstructured{argo}, Options{}); got != "Ship created" {
		t.Error(got)
	}
	left, err := s.Instances(t.Context(), definitions)
	if err != nil || len(left) != 1 || left[0].String() != "Ship default/argo, which is waiting for finalizers: example.com/ashore" {
		t.Errorf("there is %v, %v", left, err)
	}

	patientUntilWatch, ctx := impatient(t)
	_, err = patientUntilWatch.Delete(ctx, definitions, Options{})
	var stuck *StuckError
	if !errors.As(err, &stuck) || !strings.Contains(err.Error(), "ships.sea.example.com has not been deleted: Ship default/argo, which is waiting for finalizers: example.com/ashore") {
		t.Errorf("the error is %v", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error does not say why it ended: %v", err)
	}
	// A patch, because a controller of the cluster deletes the objects of a deleted kind at any time.
	if err := s.client.Patch(t.Context(), argo.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))); err != nil {
		t.Fatal(err)
	}
}

func TestRefusedDefinitions(t *testing.T) {
	s := server(t)
	definition := fixture(t, "plain")[0]

	invalid := definition.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(invalid.Object, "spec", "versions")
	schema := versions[0].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
	if err := unstructured.SetNestedField(schema, "many", "properties", "spec", "properties", "size", "default"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(invalid.Object, versions, "spec", "versions"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Apply(t.Context(), []*unstructured.Unstructured{invalid}, Options{Manager: ProjectManager})
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "properties[size].default") {
		t.Errorf("the error is %v", err)
	}

	deployed(t, s, []*unstructured.Unstructured{definition}, Options{})
	rival := definition.DeepCopy()
	rival.SetName("crafts.rowing.example.com")
	if err := unstructured.SetNestedField(rival.Object, "crafts", "spec", "names", "plural"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.client.Delete(context.Background(), rival.DeepCopy()); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
	_, err = s.Apply(t.Context(), []*unstructured.Unstructured{rival}, Options{Manager: ProjectManager})
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "its names were not accepted") {
		t.Errorf("the error is %v", err)
	}
}

func TestNothingIsAppliedIfSomethingCannotBe(t *testing.T) {
	s := server(t)
	for name, test := range map[string]struct {
		manifest string
		expected string
	}{
		"unknown kind": {
			"{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: serving, namespace: default}}",
			"the server does not have the kinds of Certificate default/serving (cert-manager.io/v1)",
		},
		"missing namespace": {"{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: nowhere}}", `namespace "nowhere" does not exist`},
	} {
		first := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: first, namespace: default}}")
		_, err := s.Apply(t.Context(), append(first, parse(t, test.manifest)...), Options{Manager: ProjectManager})
		if err == nil || err.Error() != test.expected {
			t.Errorf("%s: %v", name, err)
		}
		if exists(t, s, first[0]) {
			t.Errorf("%s: something was applied", name)
		}
	}
}

func TestNamespacesAreFilledInAndMade(t *testing.T) {
	s := server(t)
	objects := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: deploy-test, namespace: wrong}}")
	name := clustertest.Namespace(t) + "-made" // a name that no test had before
	namespace := parse(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+name+"}}")
	t.Cleanup(func() {
		if err := s.client.Delete(context.Background(), namespace[0].DeepCopy()); err != nil {
			t.Error(err)
		}
	})
	if got := deployed(t, s, objects, Options{Namespace: name, MakeNamespaces: true}); got != "Namespace created, ClusterRole created, ConfigMap created" {
		t.Error(got)
	}
	objects[0].SetNamespace(name)
	if !exists(t, s, objects[0]) {
		t.Error("the ConfigMap is not where it was to go")
	}
}

func TestAnUnavailableOperatorIsExplained(t *testing.T) {
	s := server(t)
	namespace := clustertest.Namespace(t)
	manifests := parse(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: broken}
spec:
  selector: {matchLabels: {app: broken}}
  template:
    metadata:
      labels: {app: broken}
      annotations: {opdock.dev/behaviour: image-pull-error}
    spec:
      containers: [{name: manager, image: "team/absent:v1"}]`)
	deployed(t, s, manifests, Options{Namespace: namespace})
	// Until the pod has a reason, the rollout is just under way.
	broken := manifests[0].DeepCopy()
	broken.SetNamespace(namespace)
	testenv.Eventually(t, "the pod has a reason", func(ctx context.Context) error {
		if reason := s.explain(ctx, broken, state{}); !strings.Contains(reason, "ImagePull") {
			return errors.New(reason)
		}
		return nil
	})
	patientUntilWatch, ctx := impatient(t)
	err := patientUntilWatch.AwaitReady(ctx, manifests, namespace)
	if !errors.As(err, new(*UnavailableError)) || !strings.Contains(err.Error(), "Deployment broken is not available: pod broken-") || !strings.Contains(err.Error(), "ImagePull") {
		t.Errorf("the error is %v", err)
	}
}

func TestRightsInOneNamespace(t *testing.T) {
	admin := server(t)
	namespace := clustertest.Namespace(t)
	applied(t, admin, parse(t, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: jane},
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create, patch]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: jane},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: jane}, subjects: [{kind: User, name: jane}]}`), Options{Namespace: namespace})
	identity, err := clustertest.Shared(t).As("jane")
	if err != nil {
		t.Fatal(err)
	}
	jane, err := Connect(identity.Config())
	if err != nil {
		t.Fatal(err)
	}
	// The API server takes a moment to see the role and its binding.
	testenv.Eventually(t, "jane has her rights", func(ctx context.Context) error {
		return client.IgnoreNotFound(jane.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "settings"}, &corev1.ConfigMap{}))
	})
	settings := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
	if got := applied(t, jane, settings, Options{Namespace: namespace}); got != "ConfigMap created" {
		t.Error(got)
	}
	_, err = jane.Apply(t.Context(), parse(t, "{apiVersion: v1, kind: Secret, metadata: {name: settings}}"), Options{Manager: ProjectManager, Namespace: namespace})
	if !apierrors.IsForbidden(err) {
		t.Errorf("the error is %v", err)
	}
}

// What leads to an address of this machine leads to the Service again, as after a session of opdock dev.
func TestAnAddressGivesWayToAService(t *testing.T) {
	s := server(t)
	objects := func(destination string) []*unstructured.Unstructured {
		return parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tugs.address.example.com}
spec:
  group: address.example.com
  names: {kind: Tug, plural: tugs, singular: tug, listKind: TugList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: `+destination+`}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: address-of-tugs}
webhooks:
- name: tugs.address.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [address.example.com], apiVersions: [v1], operations: [CREATE], resources: [tugs]}]
  clientConfig: `+destination+`
`)
	}
	here, there := objects(`{url: "https://127.0.0.1:9443/ask"}`), objects(`{service: {name: tugs, namespace: default, path: /ask}}`)
	for _, object := range here {
		err := s.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner("somebody"))
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := applied(t, s, there, Options{DryRun: true}); got != all(Configured, there) {
		t.Errorf("a dry run: %s", got)
	}
	if got := deployed(t, s, there, Options{}); got != all(Configured, there) {
		t.Errorf("the first time: %s", got)
	}
	if got := applied(t, s, there, Options{}); got != all(Unchanged, there) {
		t.Errorf("the second time: %s", got)
	}
	// And the other way, as a session of opdock dev after a deployment.
	if got := applied(t, s, here, Options{Manager: DevManager}); got != all(Configured, there) {
		t.Errorf("back again: %s", got)
	}
	if got := applied(t, s, here, Options{Manager: DevManager}); got != all(Unchanged, there) {
		t.Errorf("back again, twice: %s", got)
	}
}
