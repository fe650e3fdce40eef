// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

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
	client  *http.Client
	kinds   discovery.ServerResourcesInterface
	host    string
	stop    context.CancelFunc
	work    sync.WaitGroup
	earlier State // what was seen of the cluster that this one is a copy of; nil if it is none

	mutex   sync.Mutex
	objects map[Key]*unstructured.Unstructured
	watched map[schema.GroupResource]bool
	changes []Change
	last    time.Time // of a change
	blind   int       // how many watches have ended and were not begun again yet
	failed  error
	news    chan struct{}
}

// unseen are resources that are not compared: others write them constantly, or they repeat other objects.
var unseen = []string{"events", "leases", "nodes", "componentstatuses", "apiservices", "controllerrevisions", "csinodes",
	"csistoragecapacities", "flowschemas", "prioritylevelconfigurations", "bindings", "ipaddresses", "servicecidrs",
	"storageversions", "storageversionmigrations", "leasecandidates", "resourceslices", "podtemplates"}

// shared are resources that the control plane writes constantly, or has by itself. Only objects that an operator wrote are seen.
var shared = []string{"endpoints", "endpointslices", "priorityclasses", "runtimeclasses"}

// isOthers reports whether an object of a shared resource has nothing to do with an operator: only the control plane, or a step of a
// scenario, has written it.
func isOthers(resource string, object *unstructured.Unstructured) bool {
	return slices.Contains(shared, resource) && !slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return !strings.HasPrefix(entry.Manager, "kube-") && entry.Manager != "opdock-prove" && entry.Manager != "opdock-controlplane"
	})
}

// Watch starts to mirror a cluster, and returns when all existing objects are known. Close ends it. For a copy of another cluster,
// earlier is what was seen of that one when it was copied.
func Watch(ctx context.Context, config *rest.Config, earlier State) (*World, error) {
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
		client: client, kinds: found, host: strings.TrimSuffix(url.String(), "/"), stop: cancel, earlier: earlier, objects: map[Key]*unstructured.Unstructured{},
		watched: map[schema.GroupResource]bool{}, news: make(chan struct{}),
	}
	kinds := map[schema.GroupVersionResource]string{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if isSeen(&resource) {
				one := version.WithResource(resource.Name)
				kinds[one], w.watched[one.GroupResource()] = resource.Kind, true
			}
		}
	}
	var ready []<-chan error
	for resource, kind := range kinds {
		ready = append(ready, w.follow(following, resource, kind))
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

// Of is a world that does not change, for tests.
func Of(state State) *World {
	return &World{objects: state, news: make(chan struct{})}
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

func (w *World) see(ctx context.Context, c Change) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.seeLocked(c)
	w.followDefinedLocked(ctx, c.Key)
	w.tellLocked()
}

func (w *World) seeLocked(c Change) {
	if c.Type == "DELETED" {
		delete(w.objects, c.Key)
	} else {
		w.objects[c.Key] = c.Object
	}
	w.changes = append(w.changes, c)
	w.last = c.At
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

// News returns a channel that is closed at the next change, and when the last one was: now, while a watch is interrupted, because
// any change may have happened.
func (w *World) News() (news <-chan struct{}, last time.Time, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.blind > 0 {
		return w.news, time.Now(), w.failed
	}
	return w.news, w.last, w.failed
}
