// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// maxBystanders bounds how many watches a controller opens for them. Owners beyond it are retried with a back-off.
const maxBystanders = 256

// bystanders watches single objects that conflict with a child. They are not in the cache, which holds only objects
// of the fleet, so each has its own watch while the conflict lasts.
type bystanders struct {
	client client.WithWatch

	mutex   sync.Mutex
	watched map[bystander]bool
	// lifetime and queue belong to the controller; Start sets them.
	lifetime context.Context
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
}

var _ source.Source = &bystanders{}

// rewatch is how long an owner waits after a watch that ended without a change: the next one may end at once as well.
const rewatch = 5 * time.Second

type bystander struct {
	kind, name string
	owner      types.UID
}

// Start implements source.Source: the owner is added to the queue whenever its bystander changes, and when a watch
// ends for any reason. The owner is then reconciled, and watches again if necessary.
func (b *bystanders) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.lifetime, b.queue, b.watched = ctx, queue, map[bystander]bool{}
	return nil
}

// enqueue adds an owner to the queue, if the controller has started.
func (b *bystanders) enqueue(request reconcile.Request, after time.Duration) {
	if b == nil {
		return
	}
	b.mutex.Lock()
	queue := b.queue
	b.mutex.Unlock()
	if queue != nil {
		queue.AddAfter(request, after)
	}
}

// watch triggers the owner when the object changes or is deleted. It starts at the version of a list, because API servers do not
// watch from the version of an object that has not changed for minutes: they answer at once that it is too old.
func (b *bystanders) watch(ctx context.Context, object, owner client.Object) error {
	gvk, err := apiutil.GVKForObject(object, b.client.Scheme())
	if err != nil {
		return err
	}
	key := bystander{kind: gvk.String(), name: object.GetNamespace() + "/" + object.GetName(), owner: owner.GetUID()}
	if isFull, isWatched := b.reserve(key); isWatched {
		return nil
	} else if isFull {
		return fmt.Errorf("more than %d name conflicts: %s is not watched", maxBystanders, describe(object, object.GetName()))
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(owner)}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk)
	only := []client.ListOption{client.InNamespace(object.GetNamespace()), client.MatchingFields{"metadata.name": object.GetName()}}
	if err := b.client.List(ctx, list, only...); err != nil {
		b.release(key)
		return fmt.Errorf("watching %s: %w", describe(object, object.GetName()), err)
	}
	if len(list.Items) != 1 || list.Items[0].ResourceVersion != object.GetResourceVersion() {
		b.release(key)
		b.queue.AddRateLimited(request) // it has changed since it was read
		return nil
	}
	// The watch outlives this pass, so it must not end with the pass's context.
	watcher, err := b.client.Watch(context.WithoutCancel(ctx), list, append(only, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		b.release(key)
		return fmt.Errorf("watching %s: %w", describe(object, object.GetName()), err)
	}
	go func() {
		isChange := waitForChange(b.lifetime, watcher)
		b.release(key)
		if isChange {
			b.queue.Add(request)
		} else {
			b.queue.AddAfter(request, rewatch)
		}
	}()
	return nil
}

// reserve notes that a bystander is watched, unless it is already, or too many are.
func (b *bystanders) reserve(key bystander) (isFull, isWatched bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	switch {
	case b.watched[key]:
		return false, true
	case len(b.watched) >= maxBystanders:
		return true, false
	}
	b.watched[key] = true
	return false, false
}

func (b *bystanders) release(key bystander) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.watched, key)
}

// waitForChange waits until a watch reports a change or ends, and returns which.
func waitForChange(lifetime context.Context, watcher watch.Interface) (isChange bool) {
	defer watcher.Stop()
	for {
		select {
		case <-lifetime.Done():
			return false
		case happened := <-watcher.ResultChan():
			switch happened.Type {
			case watch.Bookmark:
			case watch.Added, watch.Modified, watch.Deleted:
				return true
			default: // an error, or the end
				return false
			}
		}
	}
}
