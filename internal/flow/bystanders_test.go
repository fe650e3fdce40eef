// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestOldBystander has an object that has not changed for so long that the API server does not watch from its version any more. Its
// owner must wait, and not be reconciled again and again.
func TestOldBystander(t *testing.T) {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "5"}}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner", UID: types.UID("1")}}
	events := watch.NewFake()
	var from string
	listed := "5"
	objects := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			found := list.(*metav1.PartialObjectMetadataList) //nolint:forcetypeassert // what is asked for
			found.ResourceVersion = "900"
			found.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: listed}}}
			return nil
		},
		Watch: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			var all client.ListOptions
			all.ApplyOptions(options)
			from = all.Raw.ResourceVersion
			return events, nil
		},
	})
	queue := &delays{workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()), make(chan time.Duration, 1)}
	defer queue.ShutDown()
	b := &bystanders{client: objects}
	if err := b.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := b.watch(t.Context(), object, owner); err != nil {
		t.Fatal(err)
	}
	if from != "900" {
		t.Errorf("it is watched from version %q", from)
	}
	events.Modify(object)
	wanted := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(owner)}
	if got, _ := queue.Get(); got != wanted || queue.NumRequeues(wanted) != 0 {
		t.Errorf("%v is reconciled after %d attempts", got, queue.NumRequeues(wanted))
	}
	queue.Done(wanted)

	// It may have changed between the read and the list.
	listed, from = "6", ""
	if err := b.watch(t.Context(), object, owner); err != nil {
		t.Fatal(err)
	}
	if got, _ := queue.Get(); got != wanted || from != "" {
		t.Errorf("%v is reconciled, watched from %q", got, from)
	}
	queue.Done(wanted)

	// A watch that ends at once is begun again after a pause.
	listed = "5"
	events = watch.NewFake()
	if err := b.watch(t.Context(), object, owner); err != nil {
		t.Fatal(err)
	}
	events.Error(&metav1.Status{Code: 410})
	if delay := <-queue.added; delay != rewatch || queue.Len() > 0 {
		t.Errorf("it is reconciled after %s", delay)
	}
}

// delays is a queue that only notes what is added after a while.
type delays struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	added chan time.Duration
}

func (d *delays) AddAfter(_ reconcile.Request, delay time.Duration) { d.added <- delay }
