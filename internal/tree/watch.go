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

// Sources are what a tree is made of.
type Sources struct {
	Scheme *runtime.Scheme
	// Fleet are the kinds that trees begin with, and what is worth seeing of each.
	Fleet map[schema.GroupVersionKind]Columns
	// Children are the other kinds, of which only objects with the labels are watched.
	Children []client.Object
	Labels   labels.Selector
	// Foreign says that the kinds are not ours: their objects may do without conditions, and are not new for the lack of them.
	Foreign bool
	// Namespaces to watch; all if empty.
	Namespaces []string
	// WithoutEvents leaves out the events of the API server, for a watch beside another one that has them.
	WithoutEvents bool
	// Changed, if set, is told about every object that appears, changes or goes after the first look: old is nil for one that
	// appears, and now for one that goes. It must not change them.
	Changed func(kind schema.GroupVersionKind, old, now client.Object)
}

// syncTimeout is how long the first lists may take. They never end if one of them is forbidden.
const syncTimeout = time.Minute

// Watch keeps the model up to date until the context ends. It returns once the model has all there is.
func Watch(ctx context.Context, config *rest.Config, from Sources, model *Model) error {
	result := make(chan error, 2)
	go func() { result <- Follow(ctx, config, from, model, func() { result <- nil }) }()
	return <-result
}

// Follow keeps the model up to date until the context ends, and calls synced once the model has all there is. When it
// returns, the model is not changed any more. Objects of the fleet's kinds that are gone when it begins are removed.
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
		// It returns nil when the context ends and all informers have stopped, and has nothing else to say.
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

// follower puts what a cache's informers see into a model.
type follower struct {
	informers cache.Cache
	model     *Model
	sources   Sources
	synced    []toolscache.InformerSynced

	mutex sync.Mutex
	// seen are the objects of the first lists; nil once those are complete.
	seen map[types.UID]bool
}

func (f *follower) handleAll(ctx context.Context) error {
	for gvk, columns := range f.sources.Fleet {
		// Not as its Go type, into which an object that an older schema let through might not fit.
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		describe := func(o client.Object) Object {
			described := DescribeFleet(o, gvk, columns)
			if f.sources.Foreign && described.Status == statusNew {
				// Many operators never write a status, so that it may be long since it was reconciled.
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

// sweep removes what is left of the fleet's objects from a watch before this one.
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

// changed reports changes of one kind, if a callback is set.
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
		// An event that the server forgets has happened all the same.
	}
}

// handle gives the objects of a kind to a handler. It counts as synced once the handler has had all there are.
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
