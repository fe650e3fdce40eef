// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// delivery says what an event of a watch tells the operator.
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
	object := event.Object
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
	d.Object = nameOf(object)
	o.name(d.Object, w.resource)
	resource := w.resource
	resource.Namespace, resource.Name = object.GetNamespace(), object.GetName()
	key := keyOf(resource)
	before := o.memory.find(key)
	if before.delivered != nil && before.delivered.uid == d.Object.UID && object.GetKind() != partialMetadata {
		d.Change = compare(before.delivered, object)
		d.Change.None = len(d.Change.Fields) == 0
	}
	made := writtenVersion{d.Object.UID, d.Object.ResourceVersion}
	d.Write = o.writes.find(made)
	if event.Type == "DELETED" {
		gone := writtenVersion{uid: d.Object.UID}
		d.Write = cmp.Or(d.Write, o.writes.find(gone))
		o.shown.add(gone, w.id)
		o.memory.forget(key)
		return d
	}
	o.shown.add(made, w.id)
	if object.GetKind() != partialMetadata {
		o.memory.learn(key, versionOf(object, seen.data, w.as, true, seen.at), true)
	}
	return d
}
