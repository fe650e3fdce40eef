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
			var got []string
			testenv.Eventually(t, "the events are there", func() error {
				got = nil
				for _, e := range w.events() {
					if e.Delivery != nil && e.Delivery.Object != nil && e.Delivery.Object.Name == name {
						// The answer may be slower than the event.
						own := e.Delivery.Write != 0
						for _, r := range w.requests("configmaps") {
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
			if !slices.Equal(got, want) {
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
