// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// User is the identity under which stand-ins write.
	User = "opdock:stand-in"
	// component names them in events and managed fields.
	component = "opdock-stand-in"
	// kindInterval is how often it is looked whether a kind exists that a stand-in waits for.
	kindInterval = time.Second
)

// Controller runs the stand-ins of all ConfigMaps that have the label.
type Controller struct {
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	mapper   *restmapper.DeferredDiscoveryRESTMapper
	recorder record.EventRecorder

	mu      sync.Mutex
	running map[string]*standIn // by ConfigMap and key
}

// standIn is one definition at work.
type standIn struct {
	text string
	stop context.CancelFunc
}

// Run runs the stand-ins until ctx ends. The configuration must have all rights, as the kinds may be any.
func Run(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building the client of stand-ins: %w", err)
	}
	// Custom resources have no protobuf form.
	plain := rest.CopyConfig(config)
	plain.ContentType = "application/json"
	dynamicClient, err := dynamic.NewForConfig(plain)
	if err != nil {
		return fmt.Errorf("building the client of stand-ins: %w", err)
	}
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	defer broadcaster.Shutdown()
	c := &Controller{
		client: client, dynamic: dynamicClient, running: map[string]*standIn{},
		mapper:   restmapper.NewDeferredDiscoveryRESTMapper(cacheddiscovery.NewMemCacheClient(client.Discovery())),
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = Label + "=true"
	}))
	_, err = factory.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { c.apply(ctx, object.(*corev1.ConfigMap)) },
		UpdateFunc: func(_, object any) { c.apply(ctx, object.(*corev1.ConfigMap)) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			if gone, ok := object.(*corev1.ConfigMap); ok {
				c.keepOnly(gone, nil)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching stand-ins: %w", err)
	}
	factory.Start(ctx.Done())
	<-ctx.Done()
	factory.Shutdown()
	return nil
}

// apply starts, replaces and stops the stand-ins of a ConfigMap.
func (c *Controller) apply(ctx context.Context, from *corev1.ConfigMap) {
	for _, key := range slices.Sorted(maps.Keys(from.Data)) {
		c.applyOne(ctx, from, key)
	}
	c.keepOnly(from, from.Data)
}

func (c *Controller) applyOne(ctx context.Context, from *corev1.ConfigMap, key string) {
	id, text := from.Namespace+"/"+from.Name+"/"+key, from.Data[key]
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.running[id]; before != nil {
		if before.text == text {
			return
		}
		before.stop()
		delete(c.running, id)
	}
	definition, err := Parse(text)
	if err != nil {
		c.recorder.Eventf(from, corev1.EventTypeWarning, "BadStandIn", "%s: %v", key, err)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	c.running[id] = &standIn{text: text, stop: stop}
	go c.play(ctx, definition, from.DeepCopy(), key)
}

// keepOnly stops the stand-ins of a ConfigMap that are no longer in it.
func (c *Controller) keepOnly(from *corev1.ConfigMap, data map[string]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	prefix := from.Namespace + "/" + from.Name + "/"
	for id, one := range c.running {
		if key, ok := cutPrefix(id, prefix); ok {
			if _, still := data[key]; !still {
				one.stop()
				delete(c.running, id)
			}
		}
	}
}

func cutPrefix(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || text[:len(prefix)] != prefix {
		return "", false
	}
	return text[len(prefix):], true
}

// play runs one stand-in. It waits for its kind if that does not exist yet.
func (c *Controller) play(ctx context.Context, d Definition, from *corev1.ConfigMap, key string) {
	mapping := c.awaitKind(ctx, d, from, key)
	if mapping == nil {
		return
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	informer := dynamicinformer.NewFilteredDynamicInformer(c.dynamic, mapping.Resource, metav1.NamespaceAll, 0, cache.Indexers{}, nil).Informer()
	add := func(object any) {
		if name, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(name)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, object any) { add(object) }}); err != nil {
		klog.ErrorS(err, "Watching objects for a stand-in", "kind", d.Kind)
		return
	}
	go informer.RunWithContext(ctx)
	context.AfterFunc(ctx, queue.ShutDown)
	worker := &worker{Controller: c, definition: d, mapping: mapping, store: informer.GetStore(), seen: map[types.UID]sight{}}
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		again, err := worker.sync(ctx, name)
		switch {
		case err != nil && ctx.Err() == nil:
			klog.ErrorS(err, "A stand-in failed and will try again", "kind", d.Kind, "object", name)
			queue.AddRateLimited(name)
		default:
			queue.Forget(name)
			if again > 0 {
				queue.AddAfter(name, again)
			}
		}
		queue.Done(name)
	}
}

// awaitKind returns nil if ctx ends first.
func (c *Controller) awaitKind(ctx context.Context, d Definition, from *corev1.ConfigMap, key string) *meta.RESTMapping {
	ticker := time.NewTicker(kindInterval)
	defer ticker.Stop()
	for told := false; ; {
		mapping, err := c.mapper.RESTMapping(d.GroupKind())
		if err == nil {
			return mapping
		}
		if !told {
			c.recorder.Eventf(from, corev1.EventTypeNormal, "WaitingForKind", "%s: kind %s does not exist yet; its objects get a stand-in as soon as it does", key, d.Kind)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			c.mapper.Reset()
		}
	}
}

// worker deals with the objects of one kind.
type worker struct {
	*Controller
	definition Definition
	mapping    *meta.RESTMapping
	store      cache.Store
	seen       map[types.UID]sight
}

// sight is when an object was first seen with a generation, and whether that has been dealt with.
type sight struct {
	generation int64
	annotation string
	due        time.Time
	done       bool
}

// sync brings one object to where its stand-in wants it, and returns how long to wait before that.
func (w *worker) sync(ctx context.Context, name string) (time.Duration, error) {
	found, exists, err := w.store.GetByKey(name)
	if err != nil || !exists {
		return 0, err
	}
	object := found.(*unstructured.Unstructured)
	if object.GetDeletionTimestamp() != nil {
		delete(w.seen, object.GetUID())
		return 0, nil
	}
	now := time.Now()
	sight := w.look(object, now)
	if sight.done {
		return 0, nil
	}
	if wait := sight.due.Sub(now); wait > 0 {
		return wait, nil
	}
	outcome, ok, err := w.definition.Of(object, now)
	if err != nil {
		w.recorder.Eventf(object, corev1.EventTypeWarning, "BadStandIn", "%v", err)
	} else if ok {
		if err := w.write(ctx, object, outcome); err != nil {
			return 0, err
		}
	}
	sight.done = true
	w.seen[object.GetUID()] = sight
	return 0, nil
}

// look notes when an object was created or its spec changed.
func (w *worker) look(object *unstructured.Unstructured, now time.Time) sight {
	known, found := w.seen[object.GetUID()]
	annotation := object.GetAnnotations()[Annotation]
	if found && known.generation == object.GetGeneration() && known.annotation == annotation {
		return known
	}
	since := now
	if !found {
		since = object.GetCreationTimestamp().Time // also true after a restart
	}
	known = sight{generation: object.GetGeneration(), annotation: annotation, due: since.Add(w.definition.After.Duration)}
	w.seen[object.GetUID()] = known
	return known
}

// write creates what appears, and then the status that says so.
func (w *worker) write(ctx context.Context, object *unstructured.Unstructured, outcome Outcome) error {
	for _, made := range outcome.Creates {
		mapping, err := w.mapper.RESTMapping(made.GroupVersionKind().GroupKind(), made.GroupVersionKind().Version)
		if err != nil {
			w.recorder.Eventf(object, corev1.EventTypeWarning, "BadStandIn", "%s cannot be created: %v", made.GetKind(), err)
			continue
		}
		var target dynamic.ResourceInterface = w.dynamic.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			target = w.dynamic.Resource(mapping.Resource).Namespace(made.GetNamespace())
		} else {
			made.SetNamespace("")
		}
		if _, err := target.Apply(ctx, made.GetName(), made, metav1.ApplyOptions{FieldManager: component}); err != nil {
			if apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsBadRequest(err) {
				w.recorder.Eventf(object, corev1.EventTypeWarning, "BadStandIn", "%s %s cannot be created: %v", made.GetKind(), made.GetName(), err)
				continue
			}
			return fmt.Errorf("creating %s %s: %w", made.GetKind(), made.GetName(), err)
		}
	}
	if outcome.Status == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": outcome.Status})
	if err != nil {
		return fmt.Errorf("encoding the status: %w", err)
	}
	var target dynamic.ResourceInterface = w.dynamic.Resource(w.mapping.Resource)
	if namespace := object.GetNamespace(); namespace != "" {
		target = w.dynamic.Resource(w.mapping.Resource).Namespace(namespace)
	}
	options := metav1.PatchOptions{FieldManager: component}
	_, err = target.Patch(ctx, object.GetName(), types.MergePatchType, patch, options, "status")
	if apierrors.IsNotFound(err) { // it has no such subresource, or is gone
		_, err = target.Patch(ctx, object.GetName(), types.MergePatchType, patch, options)
	}
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		w.recorder.Eventf(object, corev1.EventTypeWarning, "BadStandIn", "the status is refused: %v", err)
		return nil
	default:
		return fmt.Errorf("writing the status of %s: %w", object.GetName(), err)
	}
}
