// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/testenv"
)

// TestWhoDeletesOnARealServer has a client behind the lens that finalizes what another one deletes, and deletes others at once.
func TestWhoDeletesOnARealServer(t *testing.T) {
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		w := newWorld(t, contentType, nil)
		ctx := t.Context()
		maps := w.client.CoreV1().ConfigMaps(w.namespace)
		watching := must[watch.Interface](t)(maps.Watch(ctx, metav1.ListOptions{LabelSelector: "mine"}))
		t.Cleanup(watching.Stop)
		go func() {
			for range watching.ResultChan() {
				continue // only the lens looks at the events
			}
		}()
		made := func(name string, finalizers ...string) *corev1.ConfigMap {
			return must[*corev1.ConfigMap](t)(w.direct.CoreV1().ConfigMaps(w.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"mine": ""}, Finalizers: finalizers,
			}}, metav1.CreateOptions{}))
		}
		events := func(name, last string, want ...string) {
			t.Helper()
			if got := w.shown("configmaps", name, last); !slices.Equal(got, want) {
				t.Errorf("%s: the events of %s are %q, not %q", contentType, name, got, want)
			}
		}
		made("a", "example.com/x")
		if err := w.direct.CoreV1().ConfigMaps(w.namespace).Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		events("a", "MODIFIED", "ADDED false", "MODIFIED false")
		must[*corev1.ConfigMap](t)(maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
		events("a", "DELETED", "ADDED false", "MODIFIED false", "DELETED true")
		made("b")
		made("c", "example.com/x")
		if err := maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "mine"}); err != nil {
			t.Fatal(err)
		}
		events("b", "DELETED", "ADDED false", "DELETED true")
		events("c", "MODIFIED", "ADDED false", "MODIFIED true")
		must[*corev1.ConfigMap](t)(maps.Patch(ctx, "c", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
		events("c", "DELETED", "ADDED false", "MODIFIED true", "DELETED true")
		for _, r := range w.requests("configmaps") {
			if r.Verb == "patch" != r.Finalized || r.Verb == "deletecollection" && len(r.Deleted) != 2 {
				t.Errorf("%s: recorded is %+v", contentType, r)
			}
		}
	}
}

// shown are the types of the events of an object once the last one has a type, and whether a request through the lens made them.
func (w *world) shown(resource, name, last string) (got []string) {
	w.Helper()
	testenv.Eventually(w.T, "the events are there", func() error {
		got = nil
		for _, e := range w.events() {
			if e.Delivery != nil && e.Delivery.Object != nil && e.Delivery.Object.Name == name {
				// The answer may be slower than the event.
				own := e.Delivery.Write != 0
				for _, r := range w.requests(resource) {
					shown := func(made lens.Version) bool { return slices.Contains(e.Delivery.Shows(), made) }
					own = own || slices.ContainsFunc(r.Made(), shown)
				}
				got = append(got, fmt.Sprint(e.Delivery.Type, " ", own))
			}
		}
		if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], last) {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
	return got
}

// TestPodsThatAreDeletedAtOnce have no grace period: the API server stores that their deletion begins, and then deletes them.
func TestPodsThatAreDeletedAtOnce(t *testing.T) {
	w := newWorld(t, "application/vnd.kubernetes.protobuf", nil)
	ctx, pods := t.Context(), w.client.CoreV1().Pods(w.namespace)
	watching := must[watch.Interface](t)(pods.Watch(ctx, metav1.ListOptions{}))
	t.Cleanup(watching.Stop)
	go func() {
		for range watching.ResultChan() {
			continue // only the lens looks at the events
		}
	}()
	for name, options := range map[string]metav1.DeleteOptions{"pending": {}, "forced": {GracePeriodSeconds: ptr.To(int64(0))}} {
		must[*corev1.Pod](t)(w.direct.CoreV1().Pods(w.namespace).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/never"}}, // a node would end it
				Containers:      []corev1.Container{{Name: "a", Image: "a"}},
			},
		}, metav1.CreateOptions{}))
		w.shown("pods", name, "ADDED")
		if err := pods.Delete(ctx, name, options); err != nil {
			t.Fatal(err)
		}
		got := w.shown("pods", name, "DELETED")
		if want := []string{"ADDED false", "MODIFIED true", "DELETED true"}; !slices.Equal(got, want) {
			t.Errorf("the events of %s are %q, not %q", name, got, want)
		}
	}
}
