// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

const patience = testenv.Patience

// await waits until what is there is as it should be.
func await(t *testing.T, w *World, what string, is func(State) bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		news, _, err := w.News()
		if err != nil {
			t.Fatal(err)
		}
		if is(w.State()) {
			return
		}
		select {
		case <-news:
		case <-limit.C:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func connect(t *testing.T) client.Client {
	t.Helper()
	all := apiruntime.NewScheme()
	if err := scheme.AddToScheme(all); err != nil {
		t.Fatal(err)
	}
	if err := apiextensionsv1.AddToScheme(all); err != nil {
		t.Fatal(err)
	}
	objects, err := client.New(clustertest.Shared(t).Config(), client.Options{Scheme: all})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func follow(t *testing.T) *World {
	t.Helper()
	w, err := Watch(t.Context(), clustertest.Shared(t).Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func TestWorldMirrorsACluster(t *testing.T) {
	objects, namespace := connect(t), clustertest.Namespace(t)
	key := func(name string) Key {
		return Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: namespace, Name: name}
	}
	gunned := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"guns": "104"}}
	}
	if err := objects.Create(t.Context(), gunned("old")); err != nil {
		t.Fatal(err)
	}
	w := follow(t)

	// What was there is known at once, and is no change.
	old := w.State()[key("old")]
	if old == nil {
		t.Fatalf("%s is not known", key("old"))
	}
	if guns, _, _ := unstructured.NestedString(old.Object, "data", "guns"); guns != "104" || key("old").String() != "ConfigMap "+namespace+"/old" {
		t.Errorf("got %v", old.Object)
	}
	before, _ := w.Changes(0)
	for name := range w.State() {
		if name.Resource == "events" || name.Resource == "leases" || name.Resource == "nodes" {
			t.Errorf("%s says nothing about an operator", name)
		}
	}

	// Created, changed, deleted.
	live := gunned("new")
	if err := objects.Create(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	live.Data["guns"] = "105"
	if err := objects.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	await(t, w, "the object has changed", func(s State) bool {
		return s[key("new")] != nil && s[key("new")].GetResourceVersion() == live.ResourceVersion
	})
	if err := objects.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	await(t, w, "the object is gone", func(s State) bool { return s[key("new")] == nil })
	all, since := w.Changes(before)
	var types []string
	for _, change := range since {
		if change.Key == key("new") {
			types = append(types, change.Type)
		}
	}
	if got := strings.Join(types, " "); got != "ADDED MODIFIED DELETED" {
		t.Errorf("got %s", got)
	}
	if _, none := w.Changes(all + 1); len(none) > 0 {
		t.Errorf("there are %d changes after the last", len(none))
	}
}

// TestSharedResources are seen if an operator wrote them. The control plane has its own all the time, here for a Service.
func TestSharedResources(t *testing.T) {
	objects, namespace, w := connect(t), clustertest.Namespace(t), follow(t)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "victory"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "victory"}}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.10"}}},
	}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Value: 7}
	for _, one := range []client.Object{service, slice, class} {
		if err := objects.Create(t.Context(), one, client.FieldOwner("manager")); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := objects.Delete(context.WithoutCancel(t.Context()), class); err != nil {
			t.Error(err)
		}
	})
	await(t, w, "what the operator made is seen", func(s State) bool {
		return s[Key{Group: "discovery.k8s.io", Resource: "endpointslices", Kind: "EndpointSlice", Namespace: namespace, Name: "own"}] != nil &&
			s[Key{Group: "scheduling.k8s.io", Resource: "priorityclasses", Kind: "PriorityClass", Name: namespace}] != nil
	})
	// The control plane makes an EndpointSlice of the Service.
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		var all discoveryv1.EndpointSliceList
		err := objects.List(ctx, &all, client.InNamespace(namespace))
		return len(all.Items) > 1, err
	})
	if err != nil {
		t.Fatal(err)
	}
	// One world learns of it by an event, which may be late; another sees it at once, because it was there before.
	for about, one := range map[string]*World{"a world that was there": w, "a new world": follow(t)} {
		for key := range one.State() {
			if slices.Contains(shared, key.Resource) && key.Name != "own" && key.Name != namespace {
				t.Errorf("%s has %s, which is not of an operator", about, key)
			}
		}
	}
}

func TestObjectsOfOthers(t *testing.T) {
	for about, test := range map[string]struct {
		resource string
		managers []string
		want     bool
	}{
		"of the control plane":             {"endpoints", []string{"kube-controller-manager"}, true},
		"of a step":                        {"priorityclasses", []string{"opdock-prove"}, true},
		"of an operator":                   {"endpoints", []string{"manager"}, false},
		"of both":                          {"endpointslices", []string{"kube-controller-manager", "opdock-operator"}, false},
		"of the control plane, all others": {"services", []string{"kube-controller-manager"}, false},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		var fields []metav1.ManagedFieldsEntry
		for _, one := range test.managers {
			fields = append(fields, metav1.ManagedFieldsEntry{Manager: one})
		}
		object.SetManagedFields(fields)
		if got := isOthers(test.resource, object); got != test.want {
			t.Errorf("%s: got %v", about, got)
		}
	}
}

// TestNumbersAreWhole is about objects of other sources, which have integers.
func TestNumbersAreWhole(t *testing.T) {
	got := wholeNumbers(map[string]any{"a": float64(3), "b": 0.5, "c": []any{float64(-1), "x"}}).(map[string]any)  //nolint:forcetypeassert // it stays a map
	if got["a"] != int64(3) || got["b"] != 0.5 || got["c"].([]any)[0] != int64(-1) || got["c"].([]any)[1] != "x" { //nolint:forcetypeassert // it stays a list
		t.Errorf("got %v", got)
	}
}

// frigates creates a kind in a group of the namespace's name.
func frigates(t *testing.T, objects client.Client, namespace string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	group := namespace + ".example.com"
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "frigates." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Frigate", Plural: "frigates", Singular: "frigate", ListKind: "FrigateList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"guns": {Type: "integer"}}}},
				}},
			}},
		},
	}
	if err := objects.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := objects.Delete(context.WithoutCancel(t.Context()), crd); err != nil {
			t.Error(err)
		}
	})
	awaitServed(t, objects, crd)
	return crd
}

// aFrigate is an object of the kind.
func aFrigate(crd *apiextensionsv1.CustomResourceDefinition, namespace, name string) (*unstructured.Unstructured, Key) {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.Spec.Group + "/v1", "kind": "Frigate", "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": map[string]any{"guns": int64(104)},
	}}, Key{Group: crd.Spec.Group, Resource: "frigates", Kind: "Frigate", Namespace: namespace, Name: name}
}

// create creates an object, even if discovery does not have its kind yet.
func create(t *testing.T, objects client.Client, object *unstructured.Unstructured) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), initializing, patience, true, func(ctx context.Context) (bool, error) {
		err := objects.Create(ctx, object)
		return err == nil, client.IgnoreNotFound(ignoreNoMatch(err))
	})
	if err != nil {
		t.Fatalf("creating %s: %v", object.GetName(), err)
	}
}

func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// TestWorldOfAKindThatIsNew watches while the API server begins to serve a kind.
func TestWorldOfAKindThatIsNew(t *testing.T) {
	objects, namespace := connect(t), clustertest.Namespace(t)
	victory, key := aFrigate(frigates(t, objects, namespace), namespace, "victory")
	w := follow(t)
	create(t, objects, victory)
	await(t, w, key.String()+" is there", func(s State) bool { return s[key] != nil })
	if guns, _, err := unstructured.NestedInt64(w.State()[key].Object, "spec", "guns"); err != nil || guns != 104 {
		t.Errorf("got %d guns, %v", guns, err)
	}
	if err := objects.Delete(t.Context(), victory); err != nil {
		t.Fatal(err)
	}
	await(t, w, key.String()+" is gone", func(s State) bool { return s[key] == nil })
}

// TestWorldOfAKindThatComes is about CRDs that an operator or a scenario creates: their objects are seen like all others, also if the CRD
// is deleted and comes back.
func TestWorldOfAKindThatComes(t *testing.T) {
	objects, namespace := connect(t), clustertest.Namespace(t)
	w := follow(t)
	crd := frigates(t, objects, namespace)
	victory, key := aFrigate(crd, namespace, "victory")
	create(t, objects, victory.DeepCopy())
	await(t, w, key.String()+" is there", func(s State) bool { return s[key] != nil })
	added := slices.ContainsFunc(since(w, 0), func(c Change) bool { return c.Key == key && c.Type == "ADDED" })
	if !added {
		t.Error("there is no change in which it was added")
	}
	if err := objects.Delete(t.Context(), crd.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	definition := definitionOf(schema.GroupResource{Group: key.Group, Resource: key.Resource})
	await(t, w, "the kind is gone", func(s State) bool { return s[key] == nil && s[definition] == nil })
	again := crd.DeepCopy()
	again.ObjectMeta = metav1.ObjectMeta{Name: crd.Name}
	again.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	if err := objects.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	awaitServed(t, objects, again)
	create(t, objects, victory)
	await(t, w, key.String()+" is there again", func(s State) bool { return s[key] != nil })
}

// TestDefinedBy takes the version that discovery prefers.
func TestDefinedBy(t *testing.T) {
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": "sea.example.com", "names": map[string]any{"plural": "frigates", "kind": "Frigate"},
		"versions": []any{
			map[string]any{"name": "v1beta1", "served": true}, map[string]any{"name": "v1", "served": true},
			map[string]any{"name": "v2", "served": false}, map[string]any{"name": "v1alpha1", "served": true},
		},
	}}}
	resource, kind := definedBy(crd)
	if want := (schema.GroupVersionResource{Group: "sea.example.com", Version: "v1", Resource: "frigates"}); resource != want || kind != "Frigate" {
		t.Errorf("got %v, %s", resource, kind)
	}
}

// awaitServed waits until discovery has a kind. That the API server answers for it may still take moments.
func awaitServed(t *testing.T, objects client.Client, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), initializing, patience, true, func(ctx context.Context) (bool, error) {
		if err := objects.Get(ctx, client.ObjectKeyFromObject(crd), crd); err != nil {
			return false, err
		}
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}), nil
	})
	if err != nil {
		t.Fatalf("the kind is not served: %v", err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	config := clustertest.Shared(t).Config()
	running := func() int {
		buffer := make([]byte, 4<<20)
		return strings.Count(string(buffer[:runtime.Stack(buffer, true)]), "world.(*World)")
	}
	w, err := Watch(t.Context(), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	if running() == 0 {
		t.Fatal("nothing watches")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// A goroutine that has said that it is done may still be there for a moment.
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) { return running() == 0, nil })
	if err != nil {
		t.Errorf("%d goroutines are left", running())
	}
	if _, _, err := w.News(); err != nil {
		t.Errorf("a world that was closed has failed: %v", err)
	}
}

// TestWatchWithoutTime is about a context that ends while it begins.
func TestWatchWithoutTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if w, err := Watch(ctx, clustertest.Shared(t).Config(), nil); err == nil {
		t.Errorf("got a world, although the context has ended: %v", w.Close())
	}
}
