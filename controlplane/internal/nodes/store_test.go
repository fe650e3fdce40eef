// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strconv"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// newStore is a client whose objects have versions, whose writes conflict and whose watches miss
// nothing, as on a server. The simulation relies on all three, and client-go's own fake has none.
func newStore(t *testing.T, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	store := &versionedTracker{ObjectTracker: clienttesting.NewObjectTracker(scheme.Scheme, scheme.Codecs.UniversalDecoder())}
	for _, object := range objects {
		if err := store.Add(object); err != nil {
			t.Fatal(err)
		}
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", clienttesting.ObjectReaction(store))
	client.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		watching, err := store.watchFromNow(action.GetResource(), action.GetNamespace())
		return err == nil, watching, err
	})
	return client
}

var kinds = map[string]string{"nodes": "Node", "pods": "Pod", "leases": "Lease"}

// watchFromNow begins with all objects as they are, since they may have changed after they were listed.
func (s *versionedTracker) watchFromNow(resource schema.GroupVersionResource, namespace string) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	source, err := s.Watch(resource, namespace)
	if err != nil {
		return nil, err
	}
	list, err := s.List(resource, resource.GroupVersion().WithKind(kinds[resource.Resource]), namespace)
	if err != nil {
		return nil, err
	}
	current, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	events := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(events)
	go func() {
		defer source.Stop()
		defer close(events)
		for _, object := range current {
			select {
			case events <- watch.Event{Type: watch.Modified, Object: object}:
			case <-proxy.StopChan():
				return
			}
		}
		for {
			select {
			case event, open := <-source.ResultChan():
				if !open {
					return
				}
				select {
				case events <- event:
				case <-proxy.StopChan():
					return
				}
			case <-proxy.StopChan():
				return
			}
		}
	}()
	return proxy, nil
}

type versionedTracker struct {
	clienttesting.ObjectTracker
	mu      sync.Mutex
	version int
}

func (s *versionedTracker) Create(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.CreateOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.advance(object); err != nil {
		return err
	}
	return s.ObjectTracker.Create(resource, object, namespace, options...)
}

func (s *versionedTracker) Update(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.UpdateOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(resource, object, namespace); err != nil {
		return err
	}
	return s.ObjectTracker.Update(resource, object, namespace, options...)
}

func (s *versionedTracker) Patch(resource schema.GroupVersionResource, object runtime.Object, namespace string, options ...metav1.PatchOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(resource, object, namespace); err != nil {
		return err
	}
	return s.ObjectTracker.Patch(resource, object, namespace, options...)
}

// check refuses to replace a version that the writer has not seen, and otherwise makes a new one.
func (s *versionedTracker) check(resource schema.GroupVersionResource, object runtime.Object, namespace string) error {
	written, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	current, err := s.Get(resource, namespace, written.GetName())
	if err != nil {
		return err
	}
	stored, err := meta.Accessor(current)
	if err != nil {
		return err
	}
	if written.GetResourceVersion() != stored.GetResourceVersion() {
		return apierrors.NewConflict(resource.GroupResource(), written.GetName(), nil)
	}
	return s.advance(object)
}

func (s *versionedTracker) advance(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	s.version++
	accessor.SetResourceVersion(strconv.Itoa(s.version))
	return nil
}
