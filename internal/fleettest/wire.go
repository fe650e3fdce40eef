// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// Wire is what goes from a manager to the API server. It records every request that writes, and can be cut.
type Wire struct {
	mutex  sync.Mutex
	writes []string
	// cutAfter is how many writes get through before the wire is cut; negative: it never is.
	cutAfter int
	cut      context.CancelFunc
	gone     context.Context
}

// NewWire returns a wire and a configuration whose requests go through it.
func NewWire(config *rest.Config) (*Wire, *rest.Config) {
	w := &Wire{cutAfter: -1}
	w.gone, w.cut = context.WithCancel(context.Background())
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tap{wire: w, next: next} })
	return w, config
}

// CutAfter lets the given number of writes through and then nothing any more, as if the process had been killed right
// after the last of them: its answer does not arrive. Cut is closed at that moment.
func (w *Wire) CutAfter(writes int) (cut <-chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.cutAfter = len(w.writes) + writes
	return w.gone.Done()
}

// Writes are the requests that wrote something, such as "PATCH deployments/web", events left out.
func (w *Wire) Writes() []string {
	var result []string
	for _, write := range w.AllWrites() {
		if !strings.Contains(write, " events") {
			result = append(result, write)
		}
	}
	return result
}

// AllWrites are Writes with those of events.
func (w *Wire) AllWrites() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return append([]string(nil), w.writes...)
}

type tap struct {
	wire *Wire
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *tap) RoundTrip(request *http.Request) (*http.Response, error) {
	if t.wire.gone.Err() != nil {
		return nil, context.Canceled
	}
	if request.Method == http.MethodGet {
		return t.next.RoundTrip(request)
	}
	// It is recorded before it is sent, so it is found as soon as its effect is visible.
	last := t.wire.record(request)
	response, err := t.next.RoundTrip(request)
	if last {
		t.wire.cut()
		if response != nil {
			_ = response.Body.Close()
			return nil, context.Canceled
		}
	}
	return response, err
}

// record returns whether the wire is to be cut after this write.
func (w *Wire) record(request *http.Request) (last bool) {
	// Leases are how leaders are elected, and authorization reviews how metrics are protected; neither changes anything.
	if strings.Contains(request.URL.Path, "/leases") || strings.Contains(request.URL.Path, "reviews") {
		return false
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.writes = append(w.writes, request.Method+" "+resourceOf(request.URL.Path))
	isEvent := strings.Contains(request.URL.Path, "/events")
	return w.cutAfter >= 0 && len(w.writes) >= w.cutAfter && !isEvent
}

// resourceOf shortens a path to what follows the namespace.
func resourceOf(path string) string {
	if _, after, found := strings.Cut(path, "/namespaces/"); found {
		if _, resource, found := strings.Cut(after, "/"); found {
			return resource
		}
	}
	return path
}
