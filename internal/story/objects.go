// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// partial is the kind of an object that a watch shows without spec and status, until the lens has seen another one of its resource.
const partial = "PartialObjectMetadata"

// identify returns an arrival with the kind of its object, which may be known only after it arrived.
func (t *Teller) identify(p *pass, a *arrival) *arrival {
	if a.Object.Kind != partial {
		return a
	}
	is := schema.GroupResource{Group: a.Resource.Group, Resource: a.Resource.Resource}
	kind := t.kindOf[is]
	own := p.record.Object
	for _, candidate := range append([]timedRead{{Read: lens.Read{Group: own.Group, Kind: own.Kind}}}, p.reads...) {
		if plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: candidate.Group, Kind: candidate.Kind}); kind == "" && plural.GroupResource() == is {
			kind = candidate.Kind
		}
	}
	if kind == "" {
		return a
	}
	delivery, object := *a.Delivery, *a.Object
	object.Kind = kind
	delivery.Object = &object
	return &arrival{&delivery, a.at, a.relisted}
}

// learn learns from an object which kind its resource has, and whether that is cluster-scoped.
func (t *Teller) learn(e *lens.Event) {
	var object *lens.Object
	var resource lens.Resource
	switch {
	case e.Request != nil:
		object, resource = e.Request.Object, e.Request.Resource
	case e.Delivery != nil:
		object, resource = e.Delivery.Object, e.Delivery.Resource
	}
	if object == nil || object.Name == "" {
		return
	}
	if object.Namespace == "" {
		t.inNoNamespace[schema.GroupKind{Group: object.Group, Kind: object.Kind}] = true
	}
	if object.Kind == partial {
		return
	}
	// The objects of subresources may be of another kind: a Scale, an Eviction, a Binding.
	if resource.Resource != "" && resource.Subresource == "" && resource.Group == object.Group {
		t.kindOf[schema.GroupResource{Group: resource.Group, Resource: resource.Resource}] = object.Kind
	}
}

// objectOf returns the object that a request is about. A refusal does not contain it: then it is the one that arrived last, or
// only its name; nil if the kind of the resource is unknown.
func (t *Teller) objectOf(r *lens.Request) *lens.Object {
	if r.Object != nil {
		return r.Object
	}
	in := r.Resource
	kind := t.kindOf[schema.GroupResource{Group: in.Group, Resource: in.Resource}]
	if kind == "" || in.Name == "" {
		return nil
	}
	for _, a := range slices.Backward(t.arrivals) {
		if o := a.Object; o.Name == in.Name && o.Namespace == in.Namespace && o.Kind == kind && o.Group == in.Group {
			return o
		}
	}
	return &lens.Object{Group: in.Group, Version: in.Version, Kind: kind, Namespace: in.Namespace, Name: in.Name}
}

// writesOwnStatus reports whether a write is about the status of a custom resource. What is in there comes from a controller of its
// kind, even if another one has created the object and owns it. Some kinds have no subresource for it.
func writesOwnStatus(r *lens.Request) bool {
	if !strings.Contains(r.Resource.Group, ".") || strings.HasSuffix(r.Resource.Group, ".k8s.io") {
		return false
	}
	if r.Resource.Subresource == "status" {
		return true
	}
	return r.Change != nil && len(r.Change.Fields) > 0 && !slices.ContainsFunc(r.Change.Fields, func(c why.Change) bool {
		return c.Path != "status" && !strings.HasPrefix(c.Path, "status.")
	})
}
