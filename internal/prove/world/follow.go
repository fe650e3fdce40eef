// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/hint"
)

const (
	// initializing is the pause before a watch is tried again.
	initializing = 20 * time.Millisecond
	// reopenWithin is how long a watch may be interrupted. An API server that is busy takes seconds.
	reopenWithin = time.Minute
	// watchFor is longer than any run, so watches do not end because of their age.
	watchFor = 24 * time.Hour
)

var (
	// errNotYet is the answer of an API server that begins to serve a kind, or cannot tell what is there right now.
	// It takes moments, and there is no sign of its end.
	errNotYet = errors.New("the API server does not serve it yet")
	// errNotThere is the answer for a kind that is not served any more, or not yet. Discovery shows which, sooner or later.
	errNotThere = errors.New("the API server does not know it")
	// errEnded is a watch that ends. The API server ends the watches of a kind when its CRD changes: for example, when its
	// conversion webhook gets another address, which happens at the start of each run.
	errEnded = errors.New("the API server ended the watch")
)

// answerError is an error that the API server reports.
type answerError struct{ message string }

func (e *answerError) Error() string { return e.message }

// follow watches a resource. The channel receives one value when what was there is known, or cannot be. A watch that ends is begun
// again, as informers do.
func (w *World) follow(ctx context.Context, resource schema.GroupVersionResource, kind string) <-chan error {
	ready := make(chan error, 1)
	w.work.Go(func() {
		f := &following{world: w, resource: resource, kind: kind, began: time.Now()}
		var once sync.Once
		f.tell = func(err error) { once.Do(func() { ready <- err }) }
		f.follow(ctx)
	})
	return ready
}

// following watches one resource.
type following struct {
	world    *World
	resource schema.GroupVersionResource
	kind     string
	tell     func(error)

	isNew   bool      // discovery may not have it yet
	known   bool      // what was there, at some time
	blind   bool      // it was known, and the watch has ended
	began   time.Time // when the current attempts began
	refused error     // why they fail
}

func (f *following) follow(ctx context.Context) {
	for {
		err := f.world.read(ctx, f.resource, f.kind, func(objects State) { f.see(ctx, objects) })
		switch {
		case ctx.Err() != nil:
			f.tell(ctx.Err())
			return
		case errors.Is(err, errNotThere) && !f.isNew && !f.world.serves(f.resource):
			f.see(ctx, nil) // its CRD is being deleted, and discovery was behind
			f.world.forget(ctx, f.resource.GroupResource())
			return
		case errors.Is(err, errNotThere) && f.isNew && !f.world.isDefined(f.resource.GroupResource()):
			f.see(ctx, nil) // its CRD is gone again
			f.world.forget(ctx, f.resource.GroupResource())
			return
		}
		f.end(err)
		if !f.mayPass(err) || time.Since(f.began) > reopenWithin {
			f.world.fail(f.failure())
			f.tell(f.failure())
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(initializing):
		}
	}
}

// see takes what is there at the beginning of a watch.
func (f *following) see(ctx context.Context, objects State) {
	f.world.replace(ctx, f.resource, objects, f.blind)
	f.known, f.blind, f.isNew, f.refused = true, false, false, nil
	f.tell(nil)
}

// end notes that a watch has ended, or was not begun.
func (f *following) end(err error) {
	if f.known && !f.blind {
		f.blind, f.began = true, time.Now()
		f.world.interrupt()
	}
	f.refused = err
}

// mayPass reports whether the next attempt may succeed. What the API server refuses at first is refused for good; later it may
// only be refused until a webhook converts again.
func (f *following) mayPass(err error) bool {
	var answer *answerError
	return errors.Is(err, errNotYet) || errors.Is(err, errNotThere) || errors.Is(err, errEnded) || f.known && errors.As(err, &answer)
}

func (f *following) failure() error {
	name := f.resource.GroupResource()
	err := fmt.Errorf("watching %s on the cluster: %w", name, f.refused)
	if !f.known {
		return err
	}
	return hint.With(fmt.Errorf("%w, and it could not be begun again", err),
		"if the operator converts "+name.String()+", check that its conversion webhook answers")
}

// interrupt says that changes may be missed from now on, until replace is called.
func (w *World) interrupt() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.blind++
}

func (w *World) fail(err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.failed == nil {
		w.failed = err
	}
	w.tellLocked()
}

// replace takes all objects of a resource. If the watch was interrupted, what is different has changed in the meantime.
func (w *World) replace(ctx context.Context, resource schema.GroupVersionResource, objects State, interrupted bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	now := time.Now()
	if interrupted {
		w.blind--
		w.last = now
	}
	for key, object := range objects {
		c := Change{At: now, Type: "ADDED", Object: object, Key: key}
		old := w.objects[key]
		switch {
		case old == nil:
		case old.GetUID() != object.GetUID():
			w.seeLocked(Change{At: now, Type: "DELETED", Object: old, Key: key})
		case old.GetResourceVersion() == object.GetResourceVersion():
			continue
		default:
			c.Type = "MODIFIED"
		}
		w.seeLocked(c)
	}
	for key, old := range w.objects {
		if _, there := objects[key]; !there && key.Group == resource.Group && key.Resource == resource.Resource {
			w.seeLocked(Change{At: now, Type: "DELETED", Object: old, Key: key})
		}
	}
	for key := range objects {
		w.followDefinedLocked(ctx, key)
	}
	w.tellLocked()
}

// serves reports whether the cluster has a kind. Without a response it is assumed to.
func (w *World) serves(resource schema.GroupVersionResource) bool {
	list, err := w.kinds.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return slices.ContainsFunc(list.APIResources, func(one metav1.APIResource) bool { return one.Name == resource.Resource })
}

// read watches a resource until the watch ends, and calls ready with the objects that are there when it begins.
func (w *World) read(ctx context.Context, resource schema.GroupVersionResource, kind string, ready func(State)) error {
	path := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	query := fmt.Sprintf("?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=%d", int(watchFor.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.host+path+"/"+resource.Resource+query, http.NoBody)
	if err != nil {
		return err
	}
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests:
		return errNotYet
	case http.StatusNotFound:
		return errNotThere
	default:
		return &answerError{"the API server answered " + response.Status + messageIn(response.Body)}
	}
	events := json.NewDecoder(response.Body)
	first, known := State{}, false // what is there
	for {
		var event struct {
			Type   string         `json:"type"`
			Object map[string]any `json:"object"`
		}
		switch err := events.Decode(&event); {
		case errors.Is(err, io.EOF):
			return errEnded
		case err != nil:
			return fmt.Errorf("%w: %w", errEnded, err)
		}
		object := &unstructured.Unstructured{Object: wholeNumbers(event.Object).(map[string]any)} //nolint:forcetypeassert // it stays a map
		switch event.Type {
		case "BOOKMARK":
			if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				known = true
				ready(first)
				first = nil
			}
		case "ERROR":
			if !known && event.Object["reason"] == string(metav1.StatusReasonTimeout) {
				return errNotYet // its cache lags behind because the API server is busy
			}
			return &answerError{fmt.Sprint(event.Object["message"])}
		default:
			key := Key{Group: resource.Group, Resource: resource.Resource, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
			if _, elects := object.GetAnnotations()[LeaderAnnotation]; elects || isCommon(kind, object.GetName()) || isOthers(resource.Resource, object) && !w.has(key, object.GetUID()) {
				continue
			}
			switch {
			case known:
				w.see(ctx, Change{At: time.Now(), Type: event.Type, Object: object, Key: key})
			case event.Type == "DELETED": // while the initial objects are still sent
				delete(first, key)
			default:
				first[key] = object
			}
		}
	}
}

// has reports whether an object is known. What an operator made stays its own, even if the control plane has written all of it since,
// and also in a copy of the cluster, where only the UID shows that.
func (w *World) has(key Key, uid types.UID) bool {
	if made := w.earlier[key]; made != nil && made.GetUID() == uid {
		return true
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.objects[key] != nil
}

// mostAnswered is how much of a response that refuses something is read.
const mostAnswered = 1 << 16

// messageIn returns the message of a response that is a Status, after a colon.
func messageIn(body io.Reader) string {
	var status metav1.Status
	if err := json.NewDecoder(io.LimitReader(body, mostAnswered)).Decode(&status); err != nil || status.Message == "" {
		return ""
	}
	return ": " + status.Message
}
