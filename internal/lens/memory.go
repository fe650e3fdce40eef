// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"cmp"
	"container/list"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// objectKey names an object by what requests call it.
type objectKey struct{ group, resource, namespace, name string }

// ofMetadata is the key for versions that are metadata alone. They have one of their own, because the missing fields would look
// like a change.
func (k objectKey) ofMetadata() objectKey {
	k.resource += "/metadata"
	return k
}

// holding is the key under which a version of the object is remembered.
func (k objectKey) holding(object client.Object) objectKey {
	if kindOf(object) == partialMetadata {
		return k.ofMetadata()
	}
	return k
}

// version is a version of an object, as it passed: decoded, it would take several times the room.
type version struct {
	uid, resourceVersion string
	// apiVersion is the version of the API that it is in: the same object looks different in another one.
	apiVersion string
	data       []byte
	as         encoding
	// event means that data is a watch event that contains the object.
	event bool
	// seen is when it was first seen.
	seen time.Time
	// decoded is set as long as it is one of the latest versions, see memory.recent.
	decoded client.Object
}

func versionOf(object client.Object, data []byte, as encoding, event bool, seen time.Time) *version {
	return &version{
		uid: string(object.GetUID()), resourceVersion: object.GetResourceVersion(), apiVersion: object.GetObjectKind().GroupVersionKind().Version,
		data: data, as: as, event: event, seen: seen, decoded: object,
	}
}

// object returns the object, which must not be changed, and decodes it again if needed.
func (v *version) object() client.Object {
	if v.decoded != nil {
		return v.decoded
	}
	var decoded runtime.Object
	var err error
	if v.event {
		var event watchEvent
		event, err = decodeEvent(v.data, v.as)
		decoded = event.Object
	} else {
		decoded, err = decode(v.data, v.as)
	}
	object, ok := decoded.(client.Object)
	if err != nil || !ok {
		return nil // it could be decoded before
	}
	return object
}

// unstructured returns the object in its generic form; nil if there is none.
func (v *version) unstructured() *unstructured.Unstructured {
	if v == nil {
		return nil
	}
	object := v.object()
	if object == nil {
		return nil
	}
	return asUnstructured(object)
}

// isDeleting reports whether the deletion of the object had been requested; false if there is no version.
func (v *version) isDeleting() bool {
	if v == nil {
		return false
	}
	object := v.object()
	return object != nil && object.GetDeletionTimestamp() != nil
}

// number is the resource version as a number, which grows with each write; 0 if it is none.
func (v *version) number() uint64 {
	number, _ := strconv.ParseUint(v.resourceVersion, 10, 64)
	return number
}

// memory holds the latest versions of objects, to find changes. It drops the least recently seen ones first.
type memory struct {
	most, size int64
	entries    map[objectKey]*list.Element
	order      list.List // of *remembered, the latest first
	mentioned  mentions

	// recent are the latest versions, from oldest on, in a ring. They are kept decoded, because the next version of an
	// object often comes soon after.
	recent [keptDecoded]*version
	oldest int
}

// keptDecoded is the number of versions that are kept decoded, and maxDecoded the size of the largest ones.
const (
	keptDecoded = 256
	maxDecoded  = 16 << 10
)

// keptVersions is the number of versions of an object that are kept: those that may be delivered during a write. keptWatches is for how
// many watches the version that each delivered last is kept: an operator may have several caches of a resource.
const keptVersions, keptWatches = 4, 4

// remembered is one object.
type remembered struct {
	key objectKey
	// versions are the newest that passed in any way, oldest first, all of one UID.
	versions []*version
	// delivered are those that watches delivered last, the latest delivery at the end.
	delivered []deliveredVersion
}

// deliveredVersion is a version and the watch that delivered it, or the list.
type deliveredVersion struct {
	*version
	watch uint64
}

func (r *remembered) size() int64 {
	const itself = 400
	size := int64(itself)
	for _, v := range r.versions {
		size += int64(len(v.data))
	}
	for i, d := range r.delivered {
		isSame := func(other deliveredVersion) bool { return other.version == d.version }
		if !slices.Contains(r.versions, d.version) && !slices.ContainsFunc(r.delivered[:i], isSame) {
			size += int64(len(d.data))
		}
	}
	return size
}

// deliveredBefore returns the version with which to compare one that a watch delivers, nil if there is none: the last that the same watch
// delivered. A watch that follows a list, or that begins again, continues where another one was: then it is the newest that is older. A
// list may have the same version once more, and so may a watch that begins without one. If there are more watches than are kept, the
// others may all have delivered this version since: then it is the newest that passed in any way.
func (r *remembered) deliveredBefore(watch uint64, now *version, isInitial bool) (found *version) {
	for _, d := range r.delivered {
		switch {
		case d.uid != now.uid || d.apiVersion != now.apiVersion:
		case d.watch == watch:
			return d.version
		case d.number() < now.number() || isInitial && d.resourceVersion == now.resourceVersion:
			if found == nil || found.number() <= d.number() {
				found = d.version
			}
		}
	}
	if found != nil || len(r.delivered) < keptWatches {
		return found
	}
	for _, v := range r.versions {
		if v.uid == now.uid && v.apiVersion == now.apiVersion && v.number() < now.number() {
			found = v
		}
	}
	return found
}

// deliver remembers what a watch delivered.
func (r *remembered) deliver(watch uint64, v *version) {
	r.delivered = slices.DeleteFunc(r.delivered, func(d deliveredVersion) bool { return d.watch == watch })
	if len(r.delivered) == keptWatches {
		r.delivered = slices.Delete(r.delivered, 0, 1)
	}
	r.delivered = append(r.delivered, deliveredVersion{v, watch})
}

// same returns a version that is remembered already and is the same as another; otherwise, that one. Several watches deliver the same.
func (r *remembered) same(as *version) *version {
	isSame := func(v *version) bool {
		return v.uid == as.uid && v.resourceVersion == as.resourceVersion && v.apiVersion == as.apiVersion
	}
	if i := slices.IndexFunc(r.versions, isSame); i >= 0 {
		return r.versions[i]
	}
	if i := slices.IndexFunc(r.delivered, func(d deliveredVersion) bool { return isSame(d.version) }); i >= 0 {
		return r.delivered[i].version
	}
	return as
}

// latest is the newest version, nil if there is none.
func (r *remembered) latest() *version {
	if len(r.versions) == 0 {
		return nil
	}
	return r.versions[len(r.versions)-1]
}

// before returns the version that a write found which began at a time and made another one. If that was there already when the
// write began, the write changed nothing.
func (r *remembered) before(made *version, began time.Time) (found *version, unchanged bool) {
	for _, v := range r.versions {
		switch {
		case v.uid != made.uid:
		case v.resourceVersion == made.resourceVersion:
			if v.seen.Before(began) {
				return v, true
			}
		case v.number() < made.number():
			found = v
		}
	}
	return found, false
}

// learn adds a version in its place.
func (r *remembered) learn(v *version) {
	if latest := r.latest(); latest != nil && latest.uid != v.uid {
		r.versions = nil
	}
	at, known := slices.BinarySearchFunc(r.versions, v.number(), func(one *version, number uint64) int { return cmp.Compare(one.number(), number) })
	if known {
		return
	}
	r.versions = slices.Insert(r.versions, at, v)
	if len(r.versions) > keptVersions {
		r.versions = slices.Delete(r.versions, 0, 1)
	}
}

func newMemory(most int64) *memory {
	return &memory{most: most, entries: map[objectKey]*list.Element{}, mentioned: mentions{}}
}

// find returns the known versions of an object; empty if there are none.
func (m *memory) find(key objectKey) remembered {
	if element := m.entries[key]; element != nil {
		return *element.Value.(*remembered)
	}
	return remembered{key: key}
}

// learn remembers a version, and which watch delivered it; 0 if none did.
func (m *memory) learn(key objectKey, v *version, watch uint64) {
	m.mentioned.learn(key.group, v.decoded)
	element := m.entries[key]
	if element == nil {
		element = m.order.PushFront(&remembered{key: key})
		m.entries[key] = element
	} else {
		m.order.MoveToFront(element)
		m.size -= element.Value.(*remembered).size()
	}
	entry := element.Value.(*remembered)
	known := entry.same(v)
	if known.decoded == nil || known == v {
		known.decoded = v.decoded
		m.keepDecoded(known)
	}
	entry.learn(known)
	if watch != 0 {
		entry.deliver(watch, known)
	}
	m.size += entry.size()
	for m.size > m.most && m.order.Len() > 0 {
		m.drop(m.order.Back())
	}
}

func (m *memory) keepDecoded(v *version) {
	if len(v.data) > maxDecoded {
		v.decoded = nil
		return
	}
	if old := m.recent[m.oldest]; old != nil {
		old.decoded = nil
	}
	m.recent[m.oldest] = v
	m.oldest = (m.oldest + 1) % keptDecoded
}

// forget drops an object that a watch reports as deleted. Other watches are compared with what they delivered themselves: they may be
// behind, or the object has only left the selection of this watch. Otherwise, it is gone, and no write finds its versions.
func (m *memory) forget(key objectKey, watch uint64, isGone bool) {
	element := m.entries[key]
	if element == nil {
		return
	}
	entry := element.Value.(*remembered)
	isOfOther := func(d deliveredVersion) bool { return d.watch != watch }
	if isGone && !slices.ContainsFunc(entry.delivered, isOfOther) {
		m.drop(element)
		return
	}
	m.size -= entry.size()
	entry.delivered = slices.DeleteFunc(entry.delivered, func(d deliveredVersion) bool { return d.watch == watch })
	if isGone {
		entry.versions = nil
	}
	m.size += entry.size()
}

func (m *memory) drop(element *list.Element) {
	entry := m.order.Remove(element).(*remembered)
	delete(m.entries, entry.key)
	m.size -= entry.size()
}

// tombstones are the names of the latest deleted objects, by UID.
type tombstones struct {
	objects map[string]*Object
	uids    []string // oldest first, from next on
	next    int
}

func (t *tombstones) add(object *Object) {
	if t.objects == nil {
		t.objects = map[string]*Object{}
	}
	switch {
	case t.objects[object.UID] != nil: // several watches report it
	case len(t.uids) < keptGone:
		t.uids = append(t.uids, object.UID)
	default:
		delete(t.objects, t.uids[t.next])
		t.uids[t.next] = object.UID
		t.next = (t.next + 1) % keptGone
	}
	t.objects[object.UID] = object
}

// find returns an object that the caller may change; nil if there is none.
func (t *tombstones) find(uid string) *Object {
	found := t.objects[uid]
	if found == nil || uid == "" {
		return nil
	}
	object := *found
	return &object
}
