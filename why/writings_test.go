// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/testenv"
)

var record = flag.Bool("record", false, "record what the API server makes of managed fields")

// writing is what several managers do to an object, of which the last write is to be told.
type writing struct {
	name string
	// within is whether the last write is in the same second as the one before.
	within bool
	do     func(h *hands) (old, now client.Object)
	// want is who the writers are, and wantDropped who they are if the cache keeps no fields.
	want, wantDropped string
}

const labelled = "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {app.kubernetes.io/name: shop, tier: web}}, data: {k: a}}"

var writings = []writing{
	{name: "a label of another one is removed", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.later()
		return h.patch("kubectl-label", `{"metadata":{"labels":{"app.kubernetes.io/name":null}}}`)
	}},
	{name: "a label of another one is removed by somebody who has one", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.patch("kubectl-label", `{"metadata":{"labels":{"mine":"x"}}}`)
		h.later()
		return h.patch("kubectl-label", `{"metadata":{"labels":{"app.kubernetes.io/name":null}}}`)
	}},
	{name: "the own label is removed", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.patch("kubectl-label", `{"metadata":{"labels":{"mine":"x"}}}`)
		h.later()
		return h.patch("kubectl-label", `{"metadata":{"labels":{"mine":null}}}`)
	}},
	{name: "a label is removed in the second of its application", within: true, do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		return h.patch("kubectl-label", `{"metadata":{"labels":{"tier":null}}}`)
	}},
	{name: "one label is removed and another one set", want: "kubectl-label", wantDropped: "kubectl-label", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.later()
		return h.patch("kubectl-label", `{"metadata":{"labels":{"app.kubernetes.io/name":null,"mine":"x"}}}`)
	}},
	{name: "an applier drops a label", want: "opdock", wantDropped: "opdock", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.later()
		return h.apply("opdock", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {tier: web}}, data: {k: a}}")
	}},
	// It might as well be another manager's update.
	{name: "an applier drops a label in the same second", within: true, do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		return h.apply("opdock", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {tier: web}}, data: {k: a}}")
	}},
	{name: "a value changes again in the same second", within: true, want: "editor", wantDropped: "editor", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.later()
		h.patch("editor", `{"data":{"k":"b"}}`)
		return h.patch("editor", `{"data":{"k":"c"}}`)
	}},
	{name: "a value is applied again in the same second", within: true, want: "opdock", wantDropped: "opdock", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		return h.apply("opdock", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {app.kubernetes.io/name: shop, tier: web}}, data: {k: b}}")
	}},
	{name: "one of two who write in the same second", within: true, want: "first", wantDropped: "", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.patch("first", `{"data":{"one":"1"}}`)
		h.patch("second", `{"data":{"two":"1"}}`)
		return h.patch("first", `{"data":{"one":"2"}}`)
	}},
	{name: "a value is emptied in the same second", within: true, want: "editor", wantDropped: "", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", labelled)
		h.patch("editor", `{"metadata":{"labels":{"tier":"x"}}}`)
		return h.patch("editor", `{"metadata":{"labels":{"tier":""}}}`)
	}},
	{name: "a finalizer is removed", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", "{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [example.com/a, example.com/b]}}")
		h.later()
		return h.patch("cleaner", `{"metadata":{"finalizers":["example.com/a"]}}`)
	}},
	{name: "a deletion begins in the second of a write", within: true, do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", "{apiVersion: v1, kind: ConfigMap, metadata: {finalizers: [example.com/a]}}")
		return h.delete()
	}},
	{name: "an object from before managed fields is applied", want: "opdock", wantDropped: "opdock", do: func(h *hands) (old, now client.Object) {
		h.apply("somebody", labelled)
		h.patch("somebody", `{"metadata":{"managedFields":[{}]}}`)
		h.later()
		return h.apply("opdock", "{apiVersion: v1, kind: ConfigMap, metadata: {labels: {more: x}}}")
	}},
	{name: "a status again in the same second", within: true, want: "proxy (status)", wantDropped: "proxy (status)", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", service)
		h.patch("editor", `{"spec":{"sessionAffinity":"ClientIP"}}`)
		h.patchStatus("proxy", `{"status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"a","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		return h.patchStatus("proxy", `{"status":{"conditions":[{"type":"A","status":"True","reason":"R","message":"b","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	}},
	{name: "an element of a list again in the same second", within: true, want: "editor", wantDropped: "", do: func(h *hands) (old, now client.Object) {
		h.apply("opdock", service)
		h.patchStrategically("editor", `{"spec":{"ports":[{"port":80,"targetPort":81}]}}`)
		return h.patchStrategically("editor", `{"spec":{"ports":[{"port":80,"targetPort":82}]}}`)
	}},
	{name: "a pod is bound in the second of its creation", within: true, do: func(h *hands) (old, now client.Object) {
		h.apply("creator", "{apiVersion: v1, kind: Pod, spec: {schedulerName: nobody, automountServiceAccountToken: false, containers: [{name: app, image: app}]}}")
		return h.bind()
	}},
}

const service = "{apiVersion: v1, kind: Service, spec: {ports: [{name: http, port: 80}]}}"

// TestWritersOnAServer lets a real API server make the managed fields.
func TestWritersOnAServer(t *testing.T) {
	testenv.ControlPlane(t)
	namespace := clustertest.Namespace(t)
	c, err := client.New(clustertest.Shared(t).Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range writings {
		t.Run(s.name, func(t *testing.T) {
			const attempts = 20
			for attempt := range attempts {
				h := &hands{T: t, client: c, key: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint("written-", attempt)}}
				old, now := s.do(h)
				seen := time.Now()
				h.remove()
				if s.within && !sameSecond(old, now) {
					continue // a second has ended between the two
				}
				if *record {
					save(t, recordedAs(s.name), old, now, seen)
				}
				s.check(t, old, now, seen)
				return
			}
			t.Errorf("%d times, the writes were in different seconds", attempts)
		})
	}
}

// sameSecond reports whether all entries that two versions have in common are of the same times, and none came.
func sameSecond(old, now client.Object) bool {
	before, after := old.GetManagedFields(), now.GetManagedFields()
	for i := range after {
		if was := sameEntry(before, &after[i]); was == nil || !sameTime(was.Time, after[i].Time) {
			return false
		}
	}
	var last time.Time
	for i := range after {
		if after[i].Time.After(last) {
			last = after[i].Time.Time
		}
	}
	return time.Since(last) < 2*time.Second
}

func save(t *testing.T, file string, old, now client.Object, seen time.Time) {
	t.Helper()
	v := versions{Seen: seen.UTC().Truncate(time.Second)}
	var err error
	for object, data := range map[client.Object]*json.RawMessage{old: &v.Old, now: &v.Now} {
		if *data, err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	testenv.WriteFile(t, file, text.String())
}

// hands write to one object under several names.
type hands struct {
	*testing.T
	client client.Client
	key    types.NamespacedName
	kind   schema.GroupVersionKind
	last   client.Object
}

// wrote reads what a write has made of the object.
func (h *hands) wrote(err error) (old, now client.Object) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
	object, err := clientgoscheme.Scheme.New(h.kind)
	if err != nil {
		h.Fatal(err)
	}
	now = object.(client.Object)
	if err := h.client.Get(h.Context(), h.key, now); err != nil {
		h.Fatal(err)
	}
	now.GetObjectKind().SetGroupVersionKind(h.kind)
	old, h.last = h.last, now
	return old, now
}

// later waits until the second of the last write is over.
func (h *hands) later() {
	h.Helper()
	began := time.Now().Truncate(time.Second)
	err := wait.PollUntilContextTimeout(h.Context(), 20*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return time.Now().Truncate(time.Second).After(began), nil
	})
	if err != nil {
		h.Fatal(err)
	}
}

func (h *hands) apply(manager, text string) (old, now client.Object) {
	h.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		h.Fatal(err)
	}
	object.SetNamespace(h.key.Namespace)
	object.SetName(h.key.Name)
	h.kind = object.GroupVersionKind()
	return h.wrote(h.client.Apply(h.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager), client.ForceOwnership))
}

func (h *hands) patch(manager, patch string) (old, now client.Object) {
	h.Helper()
	return h.wrote(h.client.Patch(h.Context(), h.last.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

func (h *hands) patchStrategically(manager, patch string) (old, now client.Object) {
	h.Helper()
	return h.wrote(h.client.Patch(h.Context(), h.last.DeepCopyObject().(client.Object), client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

func (h *hands) patchStatus(manager, patch string) (old, now client.Object) {
	h.Helper()
	return h.wrote(h.client.Status().Patch(h.Context(), h.last.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

func (h *hands) delete() (old, now client.Object) {
	h.Helper()
	return h.wrote(h.client.Delete(h.Context(), h.last.DeepCopyObject().(client.Object)))
}

func (h *hands) bind() (old, now client.Object) {
	h.Helper()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: h.key.Name, Namespace: h.key.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
	return h.wrote(h.client.SubResource("binding").Create(h.Context(), h.last, binding))
}

// remove leaves the name to the next attempt.
func (h *hands) remove() {
	h.Helper()
	object := h.last.DeepCopyObject().(client.Object)
	if err := h.client.Delete(h.Context(), object, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		h.Fatal(err)
	}
	if len(object.GetFinalizers()) > 0 {
		if err := h.client.Patch(h.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); client.IgnoreNotFound(err) != nil {
			h.Fatal(err)
		}
	}
}
