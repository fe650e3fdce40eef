// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"container/list"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// objectKey names an object by what requests call it.
type objectKey struct{ group, resource, namespace, name string }

// version is a version of an object, as it passed: decoded, it would take several times the room.
type version struct {
	uid, resourceVersion string
	data                 []byte
	as                   encoding
	// event says that data is the event of a watch that has the object.
	event bool
}

func versionOf(object *unstructured.Unstructured, data []byte, as encoding, event bool) *version {
	return &version{uid: string(object.GetUID()), resourceVersion: object.GetResourceVersion(), data: data, as: as, event: event}
}

// object decodes it once more.
func (v *version) object() *unstructured.Unstructured {
	if v.event {
		decoded, err := decodeEvent(v.data, v.as)
		if err != nil {
			return nil // it could be decoded before
		}
		return decoded.Object
	}
	decoded, err := decode(v.data, v.as)
	if err != nil {
		return nil
	}
	return decoded
}

// isOlder compares resource versions, which are numbers that grow. One object may have replaced another of its name.
func (v *version) isOlder(than *version) bool {
	if v.uid != than.uid {
		return false
	}
	x, errX := strconv.ParseUint(v.resourceVersion, 10, 64)
	y, errY := strconv.ParseUint(than.resourceVersion, 10, 64)
	return errX == nil && errY == nil && x < y
}

// memory has the latest versions of objects that passed, to tell what changed. It forgets those first that were not seen for
// longest.
type memory struct {
	most, size int64
	entries    map[objectKey]*list.Element
	order      list.List // of *remembered, the latest first
}

// remembered is one object.
type remembered struct {
	key objectKey
	// latest is the newest version that passed in any way, and delivered the one that a watch delivered last.
	latest, delivered *version
}

func (r *remembered) size() int64 {
	const itself = 400
	size := int64(itself)
	if r.latest != nil {
		size += int64(len(r.latest.data))
	}
	if r.delivered != nil && r.delivered != r.latest {
		size += int64(len(r.delivered.data))
	}
	return size
}

func newMemory(most int64) *memory {
	return &memory{most: most, entries: map[objectKey]*list.Element{}}
}

// find returns what is known of an object; an empty one if that is nothing.
func (m *memory) find(key objectKey) remembered {
	if element := m.entries[key]; element != nil {
		return *element.Value.(*remembered)
	}
	return remembered{key: key}
}

// learn remembers a version.
func (m *memory) learn(key objectKey, v *version, delivered bool) {
	element := m.entries[key]
	if element == nil {
		element = m.order.PushFront(&remembered{key: key})
		m.entries[key] = element
	} else {
		m.order.MoveToFront(element)
		m.size -= element.Value.(*remembered).size()
	}
	entry := element.Value.(*remembered)
	if entry.latest == nil || !v.isOlder(entry.latest) {
		entry.latest = v
	}
	if delivered {
		entry.delivered = v
	}
	m.size += entry.size()
	for m.size > m.most && m.order.Len() > 0 {
		m.drop(m.order.Back())
	}
}

// forget is for an object that is gone.
func (m *memory) forget(key objectKey) {
	if element := m.entries[key]; element != nil {
		m.drop(element)
	}
}

func (m *memory) drop(element *list.Element) {
	entry := m.order.Remove(element).(*remembered)
	delete(m.entries, entry.key)
	m.size -= entry.size()
}
