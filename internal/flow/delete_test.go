// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	validation "k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

// unlabeled is a pass whose child has lost its label, so no cache reports when it is gone.
type unlabeled struct {
	*Pass

	server client.WithWatch
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newUnlabeled(t *testing.T, child client.Object) *unlabeled {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{robotv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(robot(), child).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, object.GetName(), validation.ErrorList{
				validation.Forbidden(validation.NewPath("data"), "field is immutable when `immutable` is set"),
			})
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if all := (&client.CreateOptions{}).ApplyOptions(options); len(all.DryRun) > 0 {
				return apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
			}
			return c.Create(ctx, object, options...)
		},
	}).Build()
	cache := interceptor.NewClient(server, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
		},
	})
	// Each object has changed since it was read, which brings the owner back at once.
	watcher := interceptor.NewClient(server, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil },
	})
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second))
	t.Cleanup(queue.ShutDown)
	watched := &bystanders{client: watcher}
	if err := watched.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	return &unlabeled{&Pass{
		owner: robot(), fieldOwner: "opdock-robot", labelKind: "robot", own: &ownWrites{}, contests: &contests{},
		shapes: new(shapes).of(scheme), client: cache, reader: server, bystanders: watched,
	}, server, queue}
}

func (u *unlabeled) comesBack() bool {
	return u.queue.NumRequeues(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(robot())}) > 0
}

// The caches do not hold a child whose label was removed, so they do not report that it is gone and can be recreated.
func TestTheOwnerOfAHiddenChildComesBack(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(*corev1.ConfigMap)
		want string
	}{
		"that is replaced": {func(c *corev1.ConfigMap) { c.Immutable = new(true) }, "Replacing"},
		"that is being deleted": {func(c *corev1.ConfigMap) {
			c.DeletionTimestamp, c.Finalizers = new(metav1.Now()), []string{"example.com/hold"}
		}, "Deleting"},
	} {
		t.Run(name, func(t *testing.T) {
			child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "child", UID: "c", OwnerReferences: []metav1.OwnerReference{{
				APIVersion: robotv1.GroupVersion.String(), Kind: "Robot", Name: robot().Name, UID: robot().UID, Controller: ptr.To(true),
			}}}}
			test.edit(child)
			u := newUnlabeled(t, child)
			err := u.Apply(t.Context(), &corev1.ConfigMap{}, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "child"}, "data": map[string]any{"a": "b"},
			})
			if Reason(err) != test.want || !u.comesBack() {
				t.Errorf("the outcome is %v, and the owner comes back: %v", err, u.comesBack())
			}
		})
	}
}

// Another owner adopts a child just before it would be replaced. Its deletion would be a loss of that owner.
func TestAnAdoptedObjectIsNotReplaced(t *testing.T) {
	child := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "child", UID: "c", Labels: map[string]string{
			LabelManagedBy: ManagedBy, LabelKind: "robot", LabelInstance: robot().Name,
		}},
		Immutable: new(true),
	}
	u := newUnlabeled(t, child)
	var deletions int
	u.client = interceptor.NewClient(u.server, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			deletions++
			var live corev1.ConfigMap
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), &live); err != nil {
				return err
			}
			live.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Other", Name: "other", UID: "o", Controller: ptr.To(true)}}
			if err := c.Update(ctx, &live); err != nil {
				return err
			}
			return c.Delete(ctx, object, options...)
		},
	})
	err := u.Apply(t.Context(), &corev1.ConfigMap{}, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "child"}, "data": map[string]any{"a": "b"},
	})
	if deletions != 1 || !apierrors.IsConflict(err) {
		t.Errorf("%d attempts to delete it: %v", deletions, err)
	}
	if err := u.server.Get(t.Context(), client.ObjectKeyFromObject(child), child); err != nil {
		t.Errorf("the object of another owner is gone: %v", err)
	}
}

// Only these statuses are followed by a look at the server for obsolete children. It would cost too much while an object makes progress.
func TestMayStillDelete(t *testing.T) {
	stalled := metav1.Condition{Type: "Stalled", Status: metav1.ConditionTrue, Reason: "Invalid"}
	for _, test := range []struct {
		name       string
		conditions []metav1.Condition
		want       bool
	}{
		{"new", nil, false},
		{"ready", []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: ReasonReady}}, false},
		{"in progress", []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing"}}, false},
		{"waits for a deletion", []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: reasonDeleting}}, true},
		{"failed", []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: ReasonRetrying}}, true},
		{"stalled", []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Invalid"}, stalled}, true},
	} {
		if got := mayStillDelete(test.conditions); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}

// A pass that has found no obsolete children is not repeated for the same spec, whatever the status says.
func TestWhatAPassHasLeft(t *testing.T) {
	var m memory
	object := robot()
	object.UID, object.Generation = "uid", 2
	check := func(when string, otherwise, want bool) {
		t.Helper()
		if got := m.mayHaveObsolete(object, otherwise); got != want {
			t.Errorf("%s: got %t", when, got)
		}
	}
	check("before the first pass", true, true)
	check("before the first pass, after a good one of another process", false, false)
	m.looked(object, true)
	check("after one that has left a child", false, true)
	m.looked(object, false)
	check("after one that has left none", true, false)
	object.Generation = 3
	check("with another spec", true, true)
	m.looked(object, false)
	object.UID = "other"
	check("another object of the name", true, true)
}
