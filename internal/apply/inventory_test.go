// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

// settings are ConfigMaps with these names.
func settings(t *testing.T, names ...string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, name := range names {
		all = append(all, parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: "+name+"}, data: {of: "+name+"}}")...)
	}
	return all
}

func memberNames(t *testing.T, s *Server, set *Set) string {
	t.Helper()
	inventory, err := s.Inventory(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, one := range inventory.Members() {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

func in(objects []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range objects {
		object = object.DeepCopy()
		object.SetNamespace(namespace)
		all = append(all, object)
	}
	return all
}

// What a set had and has no longer is deleted, by another process as well: the cluster remembers it.
func TestASetIsPruned(t *testing.T) {
	namespace := clustertest.Namespace(t)
	set := &Set{Project: "harbour", Verb: "deploy", Part: "deploy", Namespace: namespace}
	options := Options{Namespace: namespace, Set: set}
	if got := applied(t, server(t), settings(t, "a", "b", "c"), options); got != "ConfigMap created, ConfigMap created, ConfigMap created" {
		t.Error(got)
	}
	s := server(t) // another process
	dry := options
	dry.DryRun = true
	if got := applied(t, s, settings(t, "a"), dry); got != "ConfigMap unchanged, ConfigMap pruned, ConfigMap pruned" {
		t.Errorf("the dry run says %s", got)
	}
	if got := memberNames(t, s, set); got != "a b c" {
		t.Errorf("the dry run has changed the inventory to %s", got)
	}
	if got := applied(t, s, settings(t, "a"), options); got != "ConfigMap unchanged, ConfigMap pruned, ConfigMap pruned" {
		t.Errorf("it says %s", got)
	}
	gone := in(settings(t, "b", "c"), namespace)
	if exists(t, s, gone[0]) || exists(t, s, gone[1]) {
		t.Error("they are still there")
	}
	if got := memberNames(t, s, set); got != "a" {
		t.Errorf("the inventory has %s", got)
	}
	other := *set
	other.Part = "install"
	applied(t, s, settings(t, "d"), Options{Namespace: namespace, Set: &other})
	if got := memberNames(t, s, set); got != "a d" {
		t.Errorf("the inventory of both parts has %s", got)
	}
	if _, err := s.Delete(t.Context(), in(settings(t, "a", "d"), namespace), options); err != nil {
		t.Fatal(err)
	}
	file := &corev1.ConfigMap{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: set.Name()}, file); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("an inventory without members is left: %v, %v", file.Data, err)
	}
}

// A process that is killed in between leaves no unknown objects.
func TestWhatIsAboutToBeAppliedIsRemembered(t *testing.T) {
	s := server(t)
	namespace := clustertest.Namespace(t)
	set := &Set{Project: "harbour", Verb: "deploy", Part: "deploy", Namespace: namespace}
	objects := append(settings(t, "a"), parse(t, "{apiVersion: v1, kind: Service, metadata: {name: wrong}, spec: {ports: [{port: -1}]}}")...)
	if _, err := s.Apply(t.Context(), objects, Options{Manager: ProjectManager, Namespace: namespace, Set: set}); err == nil {
		t.Fatal("the server takes everything")
	}
	if got := memberNames(t, s, set); got != "a wrong" {
		t.Errorf("the inventory has %s", got)
	}
	// What was not applied after all is no reason to fail later.
	if got := applied(t, server(t), settings(t, "b"), Options{Namespace: namespace, Set: set}); got != "ConfigMap created, ConfigMap pruned" {
		t.Error(got)
	}
}

func TestWhatIsNotPruned(t *testing.T) {
	s := server(t)
	namespace := clustertest.Namespace(t)
	set := &Set{Project: "harbour", Verb: "deploy", Part: "deploy", Namespace: namespace}
	definition := fixture(t, "plain")[0]
	t.Cleanup(func() {
		if _, err := s.Delete(context.Background(), []*unstructured.Unstructured{definition}, Options{}); err != nil {
			t.Error(err)
		}
	})
	first := append(settings(t, "mine", "shared", "again", "gone"), definition)
	applied(t, s, first, Options{Namespace: namespace, Set: set})
	again := in(settings(t, "again"), namespace)[0]
	for _, object := range in(settings(t, "again", "gone"), namespace) {
		if err := s.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.client.Create(t.Context(), again.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	var notes []string
	got := applied(t, s, settings(t, "new"), Options{
		Namespace: namespace, Set: set, Note: func(text string) { notes = append(notes, text) },
		Shared: map[ID]string{IDOf(in(settings(t, "shared"), namespace)[0]): "opdock dev"},
	})
	if got != "ConfigMap created, ConfigMap pruned" {
		t.Errorf("it says %s", got)
	}
	for _, object := range append(in(settings(t, "shared", "again"), namespace), definition) {
		if !exists(t, s, object) {
			t.Errorf("%s is gone", title(object))
		}
	}
	said := strings.Join(notes, "\n")
	for _, want := range []string{"shared, which the manifests no longer have: opdock dev uses it", "again, which the manifests no longer have: another client has recreated it", definition.GetName() + ", which the manifests no longer have: it is not pruned"} {
		if !strings.Contains(said, want) {
			t.Errorf("it did not say %q:\n%s", want, said)
		}
	}
	if got := memberNames(t, s, set); got != "new "+definition.GetName() {
		t.Errorf("the inventory has %s", got)
	}
}

// A session applies the same objects again and again: a deleted or changed object is restored, and one
// that is as it was costs no write.
func TestTheSameIsAppliedAgain(t *testing.T) {
	s := server(t)
	namespace := clustertest.Namespace(t)
	options := Options{Namespace: namespace}
	applied(t, s, settings(t, "a", "b", "c"), options)
	live := in(settings(t, "a", "b"), namespace)
	if err := s.client.Delete(t.Context(), live[0].DeepCopy()); err != nil {
		t.Fatal(err)
	}
	live[1].Object["data"] = map[string]any{"of": "others"}
	if err := s.client.Update(t.Context(), live[1]); err != nil {
		t.Fatal(err)
	}
	if got := applied(t, s, settings(t, "a", "b", "c"), options); got != "ConfigMap created, ConfigMap configured, ConfigMap unchanged" {
		t.Error(got)
	}
}

// counted returns a server whose requests are counted.
func counted(t *testing.T) (*Server, *atomic.Int64) {
	t.Helper()
	testenv.ControlPlane(t)
	config := rest.CopyConfig(clustertest.Shared(t).Config())
	var count atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			count.Add(1)
			return next.RoundTrip(request)
		})
	})
	s, err := Connect(config)
	if err != nil {
		t.Fatal(err)
	}
	return s, &count
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Clusters that others use get requests at the rate of kubectl, whatever the kubeconfig's user is allowed.
func TestRequestsAreLimited(t *testing.T) {
	s, err := Connect(&rest.Config{Host: "https://127.0.0.1:1", QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	if limiter := s.discovery.RESTClient().GetRateLimiter(); limiter == nil || limiter.QPS() != requestsPerSecond {
		t.Errorf("the limit is %v", limiter)
	}
}

// Waiting costs a cluster a watch, and no polling.
func TestWaitingSendsFewRequests(t *testing.T) {
	s, count := counted(t)
	namespace := clustertest.Namespace(t)
	never := parse(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template:
    metadata:
      labels: {app: never}
      annotations: {opdock.dev/behaviour: image-pull-error}
    spec:
      containers: [{name: manager, image: "team/absent:v1"}]`)
	applied(t, s, never, Options{Namespace: namespace})
	before := count.Load()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if err := s.AwaitReady(ctx, never, namespace); err == nil {
		t.Fatal("it is ready")
	}
	if sent := count.Load() - before; sent > 6 {
		t.Errorf("three seconds of waiting took %d requests", sent)
	}
	kept := in(settings(t, "kept"), namespace)[0]
	kept.SetFinalizers([]string{"example.com/kept"})
	if err := s.client.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	before = count.Load()
	ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := s.Delete(ctx, []*unstructured.Unstructured{kept}, Options{})
	if err == nil || !strings.Contains(err.Error(), "example.com/kept") {
		t.Errorf("got %v", err)
	}
	if sent := count.Load() - before; sent > 6 {
		t.Errorf("three seconds of waiting took %d requests", sent)
	}
	kept.SetFinalizers(nil)
	if err := s.client.Patch(t.Context(), kept, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Error(err)
	}
}

// A deployment of an unchanged project reads each object once, and writes no inventory.
func TestApplyingSendsFewRequests(t *testing.T) {
	s, count := counted(t)
	namespace := clustertest.Namespace(t)
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("a", i))
	}
	options := Options{Namespace: namespace, Set: &Set{Project: "harbour", Verb: "deploy", Part: "deploy", Namespace: namespace}}
	applied(t, s, settings(t, names...), options)
	before := count.Load()
	applied(t, s, settings(t, names...), options)
	if sent := count.Load() - before; sent > 25 {
		t.Errorf("20 unchanged objects took %d requests", sent)
	}
}

// What a session of opdock dev uses leads to it as long as it runs, and is not deleted.
func TestSharedObjects(t *testing.T) {
	s := server(t)
	objects := func(destination string) []*unstructured.Unstructured {
		return parse(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tugs.shared.example.com}
spec:
  group: shared.example.com
  names: {kind: Tug, plural: tugs, singular: tug, listKind: TugList}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: `+destination+`}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: shared-tugs}
webhooks:
- name: tugs.shared.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{apiGroups: [shared.example.com], apiVersions: [v1], operations: [CREATE], resources: [tugs]}]
  clientConfig: `+destination+`
`)
	}
	session, manifests := objects(`{url: "https://127.0.0.1:9443/ask"}`), objects(`{service: {name: tugs, namespace: default, path: /ask}}`)
	deployed(t, s, session, Options{Manager: DevManager})
	shared := map[ID]string{}
	for _, object := range session {
		shared[IDOf(object)] = "opdock dev"
	}
	var notes []string
	options := Options{Shared: shared, Note: func(text string) { notes = append(notes, text) }}
	if got := applied(t, s, manifests, options); got != "CustomResourceDefinition unchanged, ValidatingWebhookConfiguration kept" {
		t.Errorf("it says %s", got)
	}
	if want := []string{"kept ValidatingWebhookConfiguration shared-tugs as it is: opdock dev uses it"}; !slices.Equal(notes, want) {
		t.Errorf("it said %q", notes)
	}
	live := empty(session[0])
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(session[0]), live); err != nil {
		t.Fatal(err)
	}
	if leads, _, _ := unstructured.NestedMap(live.Object, conversionConfig...); leads["url"] != "https://127.0.0.1:9443/ask" || leads["service"] != nil {
		t.Errorf("conversion leads to %v", leads)
	}
	outcomes, err := s.Delete(t.Context(), manifests, options)
	if err != nil || actions(outcomes) != "ValidatingWebhookConfiguration kept, CustomResourceDefinition kept" {
		t.Errorf("deleting: %s, %v", actions(outcomes), err)
	}
}

// Two processes that write an inventory at the same time do not lose what the other has written.
func TestInventoriesAreNotOverwritten(t *testing.T) {
	s := New(fake.NewClientBuilder().Build(), nil)
	set := &Set{Project: "harbour", Verb: "deploy", Namespace: "default"}
	add := func(name string) func(*Inventory) {
		return func(i *Inventory) { i.Parts[name] = []Member{{ID: ID{Kind: "ConfigMap", Name: name}, Version: "v1"}} }
	}
	raced := false
	err := s.Update(t.Context(), set, func(i *Inventory) {
		add("first")(i)
		if !raced {
			raced = true
			if err := s.Update(t.Context(), set, add("second")); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := memberNames(t, s, set); got != "first second" {
		t.Errorf("it has %s", got)
	}
	raced = false
	err = s.Update(t.Context(), set, func(i *Inventory) {
		add("third")(i)
		if !raced {
			raced = true
			if err := s.Update(t.Context(), set, add("fourth")); err != nil {
				t.Error(err)
			}
		}
	})
	if got := memberNames(t, s, set); err != nil || got != "first fourth second third" {
		t.Errorf("it has %s, %v", got, err)
	}
	all, err := s.Inventories(t.Context(), "default")
	if err != nil || len(all) != 1 || all[0].Project != "harbour" || all[0].Verb != "deploy" {
		t.Errorf("got %v, %v", all, err)
	}
}

func TestAnInventoryThatCannotBeRead(t *testing.T) {
	file := &corev1.ConfigMap{Data: map[string]string{"deploy": "what is this?"}}
	file.Namespace, file.Name = "default", "opdock-inventory-harbour-deploy"
	s := New(fake.NewClientBuilder().WithObjects(file).Build(), nil)
	_, err := s.Inventory(t.Context(), &Set{Project: "harbour", Verb: "deploy", Namespace: "default"})
	if err == nil || !strings.Contains(err.Error(), "default/opdock-inventory-harbour-deploy") || !strings.Contains(err.Error(), "delete the ConfigMap") {
		t.Errorf("got %v", err)
	}
}
