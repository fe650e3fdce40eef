// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opdock/opdock/why"
)

// Sources selects the objects of a tree.
type Sources struct {
	Scheme *runtime.Scheme
	// Fleet are the kinds that trees begin with, and the columns to show of each.
	Fleet map[schema.GroupVersionKind]Columns
	// Children are the other kinds. Only their objects with the labels are watched.
	Children []client.Object
	Labels   labels.Selector
	// Foreign means that the kinds belong to another operator. Their objects may have no conditions, and do not count
	// as new without them.
	Foreign bool
	// Namespaces to watch; all if empty.
	Namespaces []string
	// WithoutEvents excludes events of the API server, because another watch already includes them.
	WithoutEvents bool
	// Changed, if set, is called for every object that is created, updated or deleted after the first list. old is
	// nil for a created object, and now is nil for a deleted one. It must not change them.
	Changed func(kind schema.GroupVersionKind, old, now client.Object)
}

// syncTimeout is the maximum time for the first lists. If one of them is forbidden, they never complete.
const syncTimeout = time.Minute

// Watch updates the model until the context ends. It returns when the model is complete.
func Watch(ctx context.Context, config *rest.Config, from Sources, model *Model) error {
	result := make(chan error, 2)
	go func() { result <- Follow(ctx, config, from, model, func() { result <- nil }) }()
	return <-result
}

// Follow updates the model until the context ends, and calls synced when the model is complete. After it has
// returned, the model does not change. It removes objects of the fleet's kinds that no longer exist when it starts.
func Follow(ctx context.Context, config *rest.Config, from Sources, model *Model, synced func()) error {
	options := cache.Options{
		Scheme:           from.Scheme,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{},
	}
	if from.Changed != nil {
		options.DefaultTransform = why.KeepWriters(nil)
	}
	for _, child := range from.Children {
		options.ByObject[child] = cache.ByObject{Label: from.Labels}
	}
	for _, namespace := range from.Namespaces {
		if options.DefaultNamespaces == nil {
			options.DefaultNamespaces = map[string]cache.Config{}
		}
		options.DefaultNamespaces[namespace] = cache.Config{}
	}
	informers, err := cache.New(config, options)
	if err != nil {
		return fmt.Errorf("watching the tree: %w", err)
	}
	f := &follower{informers: informers, model: model, sources: from, seen: map[types.UID]bool{}}
	if err := f.handleAll(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// It always returns nil, when the context has ended and all informers have stopped.
		_ = informers.Start(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	first, done := context.WithTimeout(ctx, syncTimeout)
	defer done()
	if !toolscache.WaitForCacheSync(first.Done(), f.synced...) {
		return fmt.Errorf("watching the tree: not everything could be listed within %v; see the log: %w", syncTimeout, first.Err())
	}
	f.sweep()
	synced()
	<-ctx.Done()
	return nil
}

// follower copies the objects of informers to a model.
type follower struct {
	informers cache.Cache
	model     *Model
	sources   Sources
	synced    []toolscache.InformerSynced

	mutex sync.Mutex
	// seen are the objects of the first lists. It is nil when the lists are complete.
	seen map[types.UID]bool
}

func (f *follower) handleAll(ctx context.Context) error {
	for gvk, columns := range f.sources.Fleet {
		// Objects that were written under an older schema may not fit the Go type.
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		describe := func(o client.Object) Object {
			described := DescribeFleet(o, gvk, columns)
			if f.sources.Foreign && described.Status == statusNew {
				// Many operators never write a status, so a missing status does not mean that the object is new.
				described.State, described.Status, described.Message = Plain, "", ""
			}
			return described
		}
		if err := f.handle(ctx, object, f.objects(describe, f.sources.changed(gvk))); err != nil {
			return err
		}
	}
	for _, child := range f.sources.Children {
		gvk, err := apiutil.GVKForObject(child, f.sources.Scheme)
		if err != nil {
			return fmt.Errorf("watching the tree: %w", err)
		}
		describe := func(o client.Object) Object { return Describe(o, gvk) }
		if err := f.handle(ctx, child, f.objects(describe, f.sources.changed(gvk))); err != nil {
			return err
		}
	}
	if f.sources.WithoutEvents {
		return nil
	}
	return f.handle(ctx, &eventsv1.Event{}, f.events())
}

// sweep removes objects of the fleet that an earlier watch left behind.
func (f *follower) sweep() {
	f.mutex.Lock()
	seen := f.seen
	f.seen = nil
	f.mutex.Unlock()
	for gvk := range f.sources.Fleet {
		f.model.RemoveKind(gvk.GroupKind(), seen)
	}
}

func (f *follower) set(o Object) {
	f.mutex.Lock()
	if f.seen != nil {
		f.seen[o.UID] = true
	}
	f.mutex.Unlock()
	f.model.Set(o)
}

// changed returns the callback for one kind.
func (s Sources) changed(kind schema.GroupVersionKind) func(old, now client.Object) {
	if s.Changed == nil {
		return func(client.Object, client.Object) {}
	}
	return func(old, now client.Object) { s.Changed(kind, old, now) }
}

func (f *follower) objects(describe func(client.Object) Object, changed func(old, now client.Object)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, isInInitialList bool) {
			if object, ok := object.(client.Object); ok {
				f.set(describe(object))
				if !isInInitialList {
					changed(nil, object)
				}
			}
		},
		UpdateFunc: func(old, object any) {
			now, ok := object.(client.Object)
			if !ok {
				return
			}
			f.set(describe(now))
			if old, ok := old.(client.Object); ok && old.GetResourceVersion() != now.GetResourceVersion() {
				changed(old, now)
			}
		},
		DeleteFunc: func(object any) {
			if last, missed := object.(toolscache.DeletedFinalStateUnknown); missed {
				object = last.Obj
			}
			if object, ok := object.(client.Object); ok {
				f.model.Remove(object.GetUID())
				changed(object, nil)
			}
		},
	}
}

func (f *follower) events() toolscache.ResourceEventHandler {
	add := func(object any) {
		if event, ok := object.(*eventsv1.Event); ok {
			f.model.AddEvent(describeEvent(event))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, object any) { add(object) },
		// Deleted events stay, because they have happened.
	}
}

// handle passes the objects of a kind to a handler. The kind counts as synced when the handler has received all
// objects.
func (f *follower) handle(ctx context.Context, kind client.Object, handler toolscache.ResourceEventHandler) error {
	informer, err := f.informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	registration, err := informer.AddEventHandler(handler)
	if err != nil {
		return fmt.Errorf("watching %T: %w", kind, err)
	}
	f.synced = append(f.synced, registration.HasSynced)
	return nil
}

func describeEvent(e *eventsv1.Event) Event {
	result := Event{
		UID: e.UID, Time: e.EventTime.Time, Warning: e.Type == "Warning", Regarding: e.Regarding.UID,
		Kind: e.Regarding.Kind, Name: e.Regarding.Name, Reason: e.Reason, Note: e.Note, Count: max(1, e.DeprecatedCount),
	}
	switch {
	case e.Series != nil:
		result.Time, result.Count = e.Series.LastObservedTime.Time, e.Series.Count
	case !e.DeprecatedLastTimestamp.IsZero():
		result.Time = e.DeprecatedLastTimestamp.Time
	}
	return result
}
