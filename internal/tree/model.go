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

// keptEvents is how many of the latest events are remembered: more than the largest screen shows.
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

// Changed receives something after changes, once for any number of them.
func (m *Model) Changed() <-chan struct{} { return m.changed }

// Set adds or replaces an object.
func (m *Model) Set(o Object) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if before, known := m.objects[o.UID]; known && reflect.DeepEqual(before, o) {
		return // what has changed is not shown
	}
	m.objects[o.UID] = o
	m.history.set(o.UID)
	m.notify()
}

// Remove takes an object out.
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

// RemoveKind takes out all objects of a kind but those to keep; nil keeps none.
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

// AddEvent adds an event, or replaces it if it has happened again.
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
	// Roots are the fleet's objects that belong to no other, in order.
	Roots []*Branch
	// Fleet are all objects of the fleet, in the same order.
	Fleet []Object
	// Events are those about objects in the tree, the latest first.
	Events []Event
}

// Snapshot puts what is known in order.
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

// worthReading leaves out events that are about none of the objects, that all goes well with pods, and of warnings that
// are all alike those before the last.
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
