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
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Key names an object.
type Key struct {
	Group, Resource, Kind string
	Namespace, Name       string
}

// String names it as kubectl does.
func (k Key) String() string {
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + name
	}
	return k.Kind + " " + name
}

// Change is something that happened to an object.
type Change struct {
	At     time.Time
	Key    Key
	Type   string // ADDED, MODIFIED or DELETED
	Object *unstructured.Unstructured
}

// World mirrors a cluster.
type World struct {
	client *http.Client
	kinds  discovery.ServerResourcesInterface
	host   string
	stop   context.CancelFunc
	work   sync.WaitGroup

	mutex   sync.Mutex
	objects map[Key]*unstructured.Unstructured
	changes []Change
	last    time.Time // of a change
	failed  error
	news    chan struct{}
}

// unseen are resources that are not compared: others write them constantly, or they repeat other objects.
var unseen = []string{"events", "leases", "nodes", "endpoints", "endpointslices", "componentstatuses", "apiservices", "controllerrevisions", "csinodes",
	"csistoragecapacities", "flowschemas", "prioritylevelconfigurations", "priorityclasses", "runtimeclasses", "bindings", "ipaddresses", "servicecidrs",
	"storageversions", "storageversionmigrations", "leasecandidates", "resourceslices", "podtemplates"}

// Watch starts to mirror a cluster, and returns when all existing objects are known. Close ends it.
func Watch(ctx context.Context, config *rest.Config) (*World, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	found, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	lists, err := found.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("asking which kinds the cluster has: %w", err)
	}
	following, cancel := context.WithCancel(context.Background())
	w := &World{
		client: client, kinds: found, host: strings.TrimSuffix(url.String(), "/"), stop: cancel, objects: map[Key]*unstructured.Unstructured{},
		news: make(chan struct{}),
	}
	var ready []<-chan error
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if isSeen(&resource) {
				ready = append(ready, w.follow(following, version.WithResource(resource.Name), resource.Kind))
			}
		}
	}
	for _, one := range ready {
		select {
		case err := <-one:
			if err != nil {
				return nil, errors.Join(err, w.Close())
			}
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), w.Close())
		}
	}
	w.mutex.Lock()
	w.changes = nil // that was there before
	w.mutex.Unlock()
	return w, nil
}

func isSeen(resource *metav1.APIResource) bool {
	return slices.Contains(resource.Verbs, "watch") && slices.Contains(resource.Verbs, "list") && !strings.Contains(resource.Name, "/") && !slices.Contains(unseen, resource.Name)
}

// Close ends all watches.
func (w *World) Close() error {
	w.stop()
	w.work.Wait()
	w.client.CloseIdleConnections()
	return nil
}

// follow watches a resource. The channel receives one value when what was there is known, or cannot be.
func (w *World) follow(ctx context.Context, resource schema.GroupVersionResource, kind string) <-chan error {
	ready := make(chan error, 1)
	w.work.Go(func() {
		var once sync.Once
		tell := func(err error) { once.Do(func() { ready <- err }) }
		err := w.read(ctx, resource, kind, tell)
		for (errors.Is(err, errNotYet) || errors.Is(err, errNotThere)) && ctx.Err() == nil {
			if errors.Is(err, errNotThere) && !w.serves(resource) {
				tell(nil) // its CRD is being deleted, and discovery was behind
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(initializing):
				err = w.read(ctx, resource, kind, tell)
			}
		}
		if ctx.Err() == nil {
			err = fmt.Errorf("watching %s: %w", resource.Resource, errors.Join(err, io.ErrUnexpectedEOF))
			w.mutex.Lock()
			if w.failed == nil {
				w.failed = err
			}
			w.tellLocked()
			w.mutex.Unlock()
		}
		tell(err)
	})
	return ready
}

// errNotYet is the answer of an API server that begins to serve a kind, or cannot tell what is there right now. It takes moments, and nothing tells when it is over.
var errNotYet = errors.New("the API server does not serve it yet")

// errNotThere is the answer for a kind that is not served any more, or not yet. Discovery tells which, sooner or later.
var errNotThere = errors.New("the API server does not know it")

// serves reports whether the cluster has a kind. Without a response it is assumed to.
func (w *World) serves(resource schema.GroupVersionResource) bool {
	list, err := w.kinds.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	return slices.ContainsFunc(list.APIResources, func(one metav1.APIResource) bool { return one.Name == resource.Resource })
}

const initializing = 20 * time.Millisecond

// watchFor is longer than any run, so no watch has to be renewed.
const watchFor = 24 * time.Hour

func (w *World) read(ctx context.Context, resource schema.GroupVersionResource, kind string, ready func(error)) error {
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
		return fmt.Errorf("the API server answered %s", response.Status)
	}
	events := json.NewDecoder(response.Body)
	known := false // what was there
	for {
		var event struct {
			Type   string         `json:"type"`
			Object map[string]any `json:"object"`
		}
		if err := events.Decode(&event); err != nil {
			return err
		}
		object := &unstructured.Unstructured{Object: wholeNumbers(event.Object).(map[string]any)} //nolint:forcetypeassert // it stays a map
		switch event.Type {
		case "BOOKMARK":
			if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
				known = true
				ready(nil)
			}
		case "ERROR":
			if !known && event.Object["reason"] == string(metav1.StatusReasonTimeout) {
				return errNotYet // its cache lags behind because the API server is busy
			}
			return fmt.Errorf("%v", event.Object["message"])
		default:
			if _, elects := object.GetAnnotations()[LeaderAnnotation]; elects || isCommon(kind, object.GetName()) {
				continue
			}
			w.see(Change{At: time.Now(), Type: event.Type, Object: object, Key: Key{
				Group: resource.Group, Resource: resource.Resource, Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(),
			}})
		}
	}
}

// LeaderAnnotation is on objects by which processes elect a leader where they do not use Leases. It is written every few seconds.
const LeaderAnnotation = "control-plane.alpha.kubernetes.io/leader"

// isCommon says that the cluster gives an object to each namespace, whenever it comes to that.
func isCommon(kind, name string) bool {
	return kind == "ConfigMap" && name == "kube-root-ca.crt" || kind == "ServiceAccount" && name == "default"
}

// wholeNumbers turns whole numbers into integers, as objects have them everywhere else.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = wholeNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

func (w *World) see(c Change) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if c.Type == "DELETED" {
		delete(w.objects, c.Key)
	} else {
		w.objects[c.Key] = c.Object
	}
	w.changes = append(w.changes, c)
	w.last = c.At
	w.tellLocked()
}

func (w *World) tellLocked() {
	close(w.news)
	w.news = make(chan struct{})
}

// State holds the objects of a cluster.
type State map[Key]*unstructured.Unstructured

// State returns the current objects. Callers must not modify them.
func (w *World) State() State {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	state := make(State, len(w.objects))
	for key, object := range w.objects {
		state[key] = object
	}
	return state
}

// Changes returns how many changes there were, and those after a number of them.
func (w *World) Changes(after int) (all int, since []Change) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return len(w.changes), slices.Clone(w.changes[min(after, len(w.changes)):])
}

// News returns a channel that is closed at the next change, and when the last one was.
func (w *World) News() (news <-chan struct{}, last time.Time, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.news, w.last, w.failed
}
