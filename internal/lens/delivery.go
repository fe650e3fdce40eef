// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// delivery describes a watch event.
func (o *observer) delivery(seen *observation) *Delivery {
	w, d := seen.watching, &seen.about
	d.Watch, d.Resource, d.Initial = w.id, w.resource, w.initial
	if d.Undecoded != "" {
		return d
	}
	event, err := decodeEvent(seen.data, w.as)
	d.Type = event.Type
	if err != nil {
		d.Undecoded = err.Error()
		return d
	}
	object, ok := event.Object.(client.Object)
	if !ok {
		return d // an error, which is a Status
	}
	if event.Type == "BOOKMARK" {
		if object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			w.initial = false
		}
		d.Initial = false
		return d
	}
	if object.GetName() == "" {
		return d
	}
	o.describe(d, object)
	key := deliveredKey(d)
	for _, version := range d.Shows() {
		d.Write = cmp.Or(d.Write, o.writes.find(version))
		o.shown.add(version, w.id)
	}
	if event.Type == "DELETED" {
		o.memory.forget(key, w.id, !w.selects)
		if kindOf(object) == partialMetadata {
			o.memory.forget(key.holding(object), w.id, !w.selects)
		}
		o.gone.add(d.Object)
		return d
	}
	o.memory.learn(key.holding(object), versionOf(object, seen.data, w.as, true, seen.at), w.id)
	return d
}

// describe returns how a delivered object differs from the version delivered before, and its writers. Watches of the same objects are
// not equally fast.
func (o *observer) describe(d *Delivery, object client.Object) {
	d.Object = nameOf(object)
	o.name(d.Object, d.Resource)
	known := o.memory.find(deliveredKey(d).holding(object))
	if before := known.deliveredBefore(d.Watch, versionOf(object, nil, encodedOther, false, time.Time{}), d.Initial || d.Type == "ADDED"); before != nil {
		d.Change = compare(before, object, d.Object)
		// Metadata does not show changes of the spec and the status.
		isSame := kindOf(object) != partialMetadata || before.resourceVersion == object.GetResourceVersion()
		d.Change.None = d.Change.Count() == 0 && isSame
	}
	d.Write = o.writes.find(Version{d.Object.UID, d.Object.ResourceVersion})
}

func deliveredKey(d *Delivery) objectKey {
	return objectKey{d.Resource.Group, d.Resource.Resource, d.Object.Namespace, d.Object.Name}
}

// fillsCache reports whether a list is the initial list of an informer, or its relist, which a watch
// from its version follows. Such a list of client-go requests any version, or one that is not older than the last; of others,
// which request the newest, only the watch tells: see lists. Since client-go 0.35, informers start with a watch that sends
// initial events instead.
func fillsCache(r *Request) bool {
	return r.Verb == "list" && r.Reconcile == 0 && r.Query != nil && r.Query.ResourceVersion != "" && r.Query.Match != string(metav1.ResourceVersionMatchExact)
}
