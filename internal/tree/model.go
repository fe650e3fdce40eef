// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// keptEvents is how many of the latest events are kept. It is more than the largest screen shows.
const keptEvents = 100

// Model holds the current objects. Its methods are safe for concurrent use.
type Model struct {
	mutex   sync.Mutex
	objects map[types.UID]Object
	events  map[types.UID]Event
	changed chan struct{}
	history history
}

// NewModel returns an empty model.
func NewModel() *Model {
	return &Model{
		objects: map[types.UID]Object{}, events: map[types.UID]Event{}, changed: make(chan struct{}, 1), history: newHistory(),
	}
}

// Changed receives a value after changes. Several changes may cause only one value.
func (m *Model) Changed() <-chan struct{} { return m.changed }

// Set adds or replaces an object.
func (m *Model) Set(o Object) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if before, known := m.objects[o.UID]; known && reflect.DeepEqual(before, o) {
		return // only fields changed that are not shown
	}
	m.objects[o.UID] = o
	m.history.set(o.UID)
	m.notify()
}

// Remove removes an object.
func (m *Model) Remove(uid types.UID) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if _, known := m.objects[uid]; !known {
		return
	}
	delete(m.objects, uid)
	m.history.remove(uid)
	m.notify()
}

// RemoveKind removes all objects of a kind except those to keep. A nil map keeps none.
func (m *Model) RemoveKind(kind schema.GroupKind, keep map[types.UID]bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	removed := false
	for uid, o := range m.objects {
		if o.Group == kind.Group && o.Kind == kind.Kind && !keep[uid] {
			delete(m.objects, uid)
			m.history.remove(uid)
			removed = true
		}
	}
	if removed {
		m.notify()
	}
}

// AddEvent adds an event, or replaces an earlier version of it.
func (m *Model) AddEvent(e Event) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.events[e.UID] = e
	if len(m.events) > 2*keptEvents {
		for _, old := range sortEvents(m.events)[keptEvents:] {
			delete(m.events, old.UID)
		}
	}
	m.notify()
}

func (m *Model) notify() {
	select {
	case m.changed <- struct{}{}:
	default: // the listener has not handled the last change yet
	}
}

// Snapshot is the model at one moment.
type Snapshot struct {
	// Roots are the objects of the fleet that belong to no other object, sorted.
	Roots []*Branch
	// Fleet are all objects of the fleet, in the same order.
	Fleet []Object
	// Events are the events of objects in the tree, latest first.
	Events []Event
}

// Snapshot returns the trees and events, sorted.
func (m *Model) Snapshot() Snapshot {
	m.mutex.Lock()
	objects, events := slices.Collect(maps.Values(m.objects)), sortEvents(m.events)
	m.mutex.Unlock()

	s := Snapshot{Roots: Grow(objects)}
	rootOf := map[types.UID]types.UID{}
	for _, root := range s.Roots {
		root.Visit(func(o Object) {
			rootOf[o.UID] = root.UID
			if o.Fleet {
				s.Fleet = append(s.Fleet, o)
			}
		})
	}
	s.Events = worthReading(events, rootOf)
	return s
}

// worthReading drops events of objects that are not in the tree, normal events of pods and ReplicaSets, and all but
// the latest of equal warnings.
func worthReading(events []Event, rootOf map[types.UID]types.UID) []Event {
	type likeness struct {
		root         types.UID
		kind, reason string
	}
	seen := map[likeness]bool{}
	var result []Event
	for _, event := range events {
		root, shown := rootOf[event.Regarding]
		if !shown || !event.Warning && (event.Kind == podKind || event.Kind == replicaSetKind) {
			continue
		}
		if event.Warning {
			like := likeness{root, event.Kind, event.Reason}
			if seen[like] {
				continue
			}
			seen[like] = true
		}
		result = append(result, event)
	}
	return result
}

func sortEvents(events map[types.UID]Event) []Event {
	return slices.SortedFunc(maps.Values(events), func(a, b Event) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
}
