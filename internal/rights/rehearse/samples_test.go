// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

// in is always the same namespace.
func in(namespace string) func() string { return func() string { return namespace } }

// TestSamplesThatAreRefused has alternatives under one name, a placeholder and a kind that the cluster does not have.
func TestSamplesThatAreRefused(t *testing.T) {
	testenv.ControlPlane(t)
	h := newHarbor(t, clustertest.Shared(t), clustertest.Namespace(t))
	sample := func(apiVersion, kind, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	}
	var notes []string
	acts, subjects := Samples(h.admin, []*unstructured.Unstructured{
		sample("v1", "ConfigMap", "one"), sample("v1", "ConfigMap", "one"), sample("v1", "ConfigMap", "one"), sample("v1", "ConfigMap", "<name>"), sample("example.com/v1", "Ship", "two"),
	}, in(h.namespace), func(text string) { notes = append(notes, text) })
	for _, act := range acts {
		if err := act.Do(t.Context()); err != nil {
			t.Fatalf("%s: %v", act.Name, err)
		}
	}
	if len(notes) != 3 || !strings.Contains(notes[0], "ConfigMap one: ") || !strings.Contains(notes[1], "ConfigMap <name>: ") || !strings.Contains(notes[2], "Ship two: ") {
		t.Errorf("notes are %q", notes)
	}
	// The Ship is what the operator is for. That a ConfigMap exists shows nothing about it.
	want := []Subject{{Kind: Kind{"example.com", "Ship"}, LeftOut: true}}
	if got := subjects(); !slices.Equal(got, want) {
		t.Errorf("subjects are %+v", got)
	}
	none, _ := Samples(h.admin, []*unstructured.Unstructured{sample("v1", "ConfigMap", "<name>")}, in(h.namespace), nil)
	if err := none[0].Do(t.Context()); err == nil || !strings.Contains(err.Error(), "<name>") {
		t.Errorf("if all are refused: %v", err)
	}
}

// TestSamplesInOtherNamespaces have one of their own, which is not there, or go where the operator looks.
func TestSamplesInOtherNamespaces(t *testing.T) {
	testenv.ControlPlane(t)
	h := newHarbor(t, clustertest.Shared(t), clustertest.Namespace(t))
	sample := func(name, namespace string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": namespace}}}
	}
	here, there := h.namespace+"-here", h.namespace+"-there"
	t.Cleanup(func() {
		for _, name := range []string{here, there} {
			_ = h.admin.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
	})
	acts, _ := Samples(h.admin, []*unstructured.Unstructured{sample("one", ""), sample("two", there)}, in(here), func(text string) { t.Errorf("note: %s", text) })
	if err := acts[0].Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, namespace := range map[string]string{"one": here, "two": there} {
		if err := h.admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
}

// A webhook that cannot be called is no fault of a sample: what it would have shown is missing.
func TestAWebhookThatCannotBeCalledEndsTheRehearsal(t *testing.T) {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	broken := fake.NewClientBuilder().WithRESTMapper(kinds).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, server client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if object.GetName() == "two" {
				return apierrors.NewInternalError(errors.New("failed calling webhook"))
			}
			return server.Create(ctx, object, options...)
		},
	}).Build()
	var samples []*unstructured.Unstructured
	for _, name := range []string{"one", "two"} {
		samples = append(samples, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}}})
	}
	acts, _ := Samples(broken, samples, in("default"), func(text string) { t.Errorf("note: %s", text) })
	err := acts[0].Do(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ConfigMap two: ") || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("the error is %v", err)
	}
}

// A webhook may deny a sample until the operator has handled another one, or until another one is gone.
func TestSamplesThatDependOnEachOther(t *testing.T) {
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	// A webhook chooses the code of its answer.
	denied := apierrors.NewServiceUnavailable(`admission webhook "maps.example.com" denied the request: try again`)
	creations, deletions := 0, []string{}
	server := fake.NewClientBuilder().WithRESTMapper(kinds).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, server client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if creations++; creations == 2 {
				return denied
			}
			return server.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, server client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			if deletions = append(deletions, object.GetName()); len(deletions) == 2 {
				return denied
			}
			return server.Delete(ctx, object, options...)
		},
	}).Build()
	var samples []*unstructured.Unstructured
	for _, name := range []string{"one", "two"} {
		samples = append(samples, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}}})
	}
	acts, _ := Samples(server, samples, in("default"), func(text string) { t.Errorf("note: %s", text) })
	for _, act := range acts {
		if err := act.Do(t.Context()); err != nil {
			t.Fatalf("%s: %v", act.Name, err)
		}
	}
	if want := []string{"two", "one", "one"}; !slices.Equal(deletions, want) {
		t.Errorf("deletions are %q", deletions)
	}
	// What stays denied is the error, not that the time is over.
	ctx, cancel := context.WithCancel(t.Context())
	err := admitted(ctx, func() error {
		cancel()
		return denied
	})
	if !errors.Is(err, denied) {
		t.Errorf("the error is %v", err)
	}
}

// An operator may create the CRD of one sample because of another.
func TestSamplesOfAKindThatTheOperatorCreates(t *testing.T) {
	ship := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}
	shipsIn := func(server client.Client) int {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ship)
		if err := server.List(context.Background(), list); err != nil {
			t.Error(err)
		}
		return len(list.Items)
	}
	leaving := map[schema.GroupVersionKind]bool{}
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	server := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(kinds).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, server client.WithWatch, object client.Object, options ...client.CreateOption) error {
			kinds.Add(ship, meta.RESTScopeNamespace)
			return server.Create(ctx, object, options...)
		},
		Delete: func(_ context.Context, server client.WithWatch, object client.Object, _ ...client.DeleteOption) error {
			if ships := shipsIn(server); object.GetObjectKind().GroupVersionKind() != ship && ships > 0 {
				t.Errorf("%s is deleted while there are %d ships", object.GetName(), ships)
			}
			leaving[object.GetObjectKind().GroupVersionKind()] = true // a finalizer holds it
			return nil
		},
		Get: func(ctx context.Context, server client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := server.Get(ctx, key, object, options...)
			if kind := object.GetObjectKind().GroupVersionKind(); err == nil && leaving[kind] {
				delete(leaving, kind)
				return server.Delete(ctx, object.DeepCopyObject().(client.Object)) // it is gone the next time
			}
			return err
		},
	}).Build()
	var samples []*unstructured.Unstructured
	for _, kind := range []schema.GroupVersionKind{ship, corev1.SchemeGroupVersion.WithKind("ConfigMap")} {
		sample := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "one", "namespace": "default"}}}
		sample.SetGroupVersionKind(kind)
		samples = append(samples, sample)
	}
	acts, subjects := Samples(server, samples, in("default"), func(text string) { t.Errorf("note: %s", text) })
	for _, act := range acts {
		if err := act.Do(t.Context()); err != nil {
			t.Fatalf("%s: %v", act.Name, err)
		}
	}
	if got := subjects(); len(got) != 1 || got[0].Kind.Kind != "Ship" || got[0].LeftOut {
		t.Errorf("subjects are %+v", got)
	}
}

func TestSamplesThatWaitForKubernetes(t *testing.T) {
	deleted := metav1.Now()
	for name, test := range map[string]struct {
		finalizers []string
		deleted    *metav1.Time
		want       bool
	}{
		"a volume in use":         {[]string{"kubernetes.io/pv-protection"}, &deleted, true},
		"the operator's":          {[]string{finalizer}, &deleted, false},
		"both":                    {[]string{"kubernetes.io/pv-protection", finalizer}, &deleted, false},
		"not deleted":             {[]string{"kubernetes.io/pv-protection"}, nil, false},
		"deleted at this instant": {nil, &deleted, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetFinalizers(test.finalizers)
			object.SetDeletionTimestamp(test.deleted)
			if got := isLeftToKubernetes(object); got != test.want {
				t.Errorf("got %t, want %t", got, test.want)
			}
		})
	}
}
