// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
)

const (
	// patience is after how many pauses the list is written even if there was no pause.
	patience = 5

	// countInterval is how long events that change nothing wait until their count is written.
	countInterval = 10 * time.Second
)

// watchers holds the state of Collectors between reconciles, by namespace and name, so a pod event is compared only
// with the selectors of its namespace. If it is lost, only the counts of the last seconds are.
type watchers struct {
	clock clock.PassiveClock

	mutex       sync.Mutex
	byNamespace map[string]map[string]*watcher
}

// watcher is the state of one Collector. The mutex of watchers protects it.
type watcher struct {
	uid types.UID
	// generation, selector and debounce come from the last reconcile; without a selector there was none.
	generation int64
	selector   labels.Selector
	debounce   time.Duration

	// counts and reconciles are totals. Counts of earlier processes are in the status, and are added at the first
	// reconcile.
	counts     counts
	reconciles int64
	begun      bool
	// uncounted is when the first event was seen that is not in the status yet.
	uncounted time.Time

	// first and last are when addresses have changed since the last look; zero if they have not.
	first, last time.Time

	// fingerprint is the fingerprint of all addresses at the last reconcile. The status does not hold all of
	// them.
	fingerprint string
	// output is the content of the ConfigMap since the last reconcile; nil if it could not be written, or there
	// is none.
	output map[string]string
}

func newWatchers(clock clock.PassiveClock) *watchers {
	return &watchers{clock: clock, byNamespace: map[string]map[string]*watcher{}}
}

// of returns the watcher of a Collector, and a new one if there is none or it was that of another of the same name.
func (w *watchers) of(collector client.Object) *watcher {
	namespace, name := collector.GetNamespace(), collector.GetName()
	found := w.byNamespace[namespace][name]
	if found == nil || found.uid != collector.GetUID() {
		found = &watcher{uid: collector.GetUID(), counts: counts{}}
		if w.byNamespace[namespace] == nil {
			w.byNamespace[namespace] = map[string]*watcher{}
		}
		w.byNamespace[namespace][name] = found
	}
	return found
}

func (w *watchers) forget(collector client.Object) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	namespace := w.byNamespace[collector.GetNamespace()]
	if found := namespace[collector.GetName()]; found != nil && found.uid == collector.GetUID() {
		delete(namespace, collector.GetName())
	}
	if len(namespace) == 0 {
		delete(w.byNamespace, collector.GetNamespace())
	}
}

// podHappened records a pod event for the Collectors that select the pod: old is nil for a new pod, now is nil for
// a deleted one. It returns the delay after which to reconcile each of them.
func (w *watchers) podHappened(what collectorv1.EventType, old, now *corev1.Pod) map[types.NamespacedName]time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	pod := now
	if pod == nil {
		pod = old
	}
	var result map[types.NamespacedName]time.Duration
	for name, watcher := range w.byNamespace[pod.Namespace] {
		before, after := watcher.picks(old), watcher.picks(now)
		if before == nil && after == nil {
			continue
		}
		if result == nil {
			result = map[types.NamespacedName]time.Duration{}
		}
		result[types.NamespacedName{Namespace: pod.Namespace, Name: name}] =
			watcher.note(occurrence{"Pod", what}, !sameAddresses(before, after), w.clock.Now())
	}
	return result
}

// picks returns the pod if the Collector picks it.
func (w *watcher) picks(pod *corev1.Pod) *corev1.Pod {
	if pod == nil || w.selector == nil || !w.selector.Matches(labels.Set(pod.Labels)) {
		return nil
	}
	return pod
}

func sameAddresses(before, after *corev1.Pod) bool {
	of := func(pod *corev1.Pod) []collectorv1.Address {
		if pod == nil {
			return nil
		}
		return addressesOf(pod)
	}
	return reflect.DeepEqual(of(before), of(after))
}

// happened notes what happened to a Collector itself, and returns after how long the count may be written.
func (w *watchers) happened(what collectorv1.EventType, collector client.Object) time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.of(collector).note(occurrence{"Collector", what}, false, w.clock.Now())
}

func (w *watcher) note(what occurrence, changed bool, now time.Time) (look time.Duration) {
	w.counts[what]++
	if w.uncounted.IsZero() {
		w.uncounted = now
	}
	if !changed {
		return countInterval
	}
	if w.first.IsZero() {
		w.first = now
	}
	w.last = now
	return w.debounce
}

// pause is how long to wait for further changes, and 0 if it is time to look.
func (w *watcher) pause(now time.Time) time.Duration {
	if w.first.IsZero() {
		return 0
	}
	due := w.last.Add(w.debounce)
	if latest := w.first.Add(patience * w.debounce); latest.Before(due) {
		due = latest
	}
	return max(0, due.Sub(now))
}
