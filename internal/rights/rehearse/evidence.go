// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
)

// Subject is an object that the operator is to reconcile.
type Subject struct {
	Kind Kind
	// Resource has its group, resource, namespace and name only.
	Resource lens.Resource
	// LeftOut means that it could not be created, so that the operator cannot reconcile it.
	LeftOut bool
}

// evidence is what shows that an operator reconciles an object. A watch alone does not, if reconciles can be seen: an informer works
// even if its controller waits for another one.
type evidence struct {
	marked     bool                          // the operator marks its reconciles
	reconciles map[[2]string][]string        // the controllers, by namespace and name
	reads      map[read]bool                 // in reconciles, from a cache
	requests   map[lens.Resource]bool        // the objects that requests name
	delivered  map[lens.Resource]bool        // the objects in watch events
	lists      map[schema.GroupResource]bool // those that returned objects
	writes     bool                          // there are some that belong to no marked reconcile
}

type read struct {
	kind            Kind
	namespace, name string
}

func newEvidence() *evidence {
	return &evidence{
		reconciles: map[[2]string][]string{}, reads: map[read]bool{},
		requests: map[lens.Resource]bool{}, delivered: map[lens.Resource]bool{}, lists: map[schema.GroupResource]bool{},
	}
}

func (v *evidence) add(e *lens.Event) {
	switch {
	case e.Process != nil:
		v.marked = v.marked || e.Process.Instrumented
	case e.Reconcile != nil:
		object := [2]string{e.Reconcile.Namespace, e.Reconcile.Name}
		if !slices.Contains(v.reconciles[object], e.Reconcile.Controller) {
			v.reconciles[object] = append(v.reconciles[object], e.Reconcile.Controller)
		}
	case e.Read != nil:
		v.reads[read{Kind{e.Read.Group, e.Read.Kind}, e.Read.Namespace, e.Read.Name}] = true
	case e.Delivery != nil && e.Delivery.Object != nil:
		v.delivered[named(e.Delivery.Resource, e.Delivery.Object.Namespace, e.Delivery.Object.Name)] = true
	case e.Request != nil:
		v.addRequest(e.Request)
	}
}

func (v *evidence) addRequest(r *lens.Request) {
	if r.Status >= http.StatusBadRequest {
		return
	}
	if r.Verb == "list" && r.Items > 0 {
		v.lists[schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}] = true
	}
	if r.Resource.Name != "" && r.Verb != "watch" && r.Verb != "list" {
		v.requests[named(r.Resource, r.Resource.Namespace, r.Resource.Name)] = true
	}
	if r.IsWrite() && r.Reconcile == 0 && !neverEnds(r.Resource) && r.Resource.Resource != "events" {
		v.writes = true
	}
}

func named(r lens.Resource, namespace, name string) lens.Resource {
	return lens.Resource{Group: r.Group, Resource: r.Resource, Namespace: namespace, Name: name}
}

// shows reports whether the operator has reconciled an object. Others are all objects that it is to reconcile.
func (v *evidence) shows(s Subject, others []Subject) bool {
	r := s.Resource
	if v.requests[r] || v.reconciled(s, others) {
		return true
	}
	if v.reads[read{s.Kind, r.Namespace, r.Name}] {
		return true
	}
	seen := v.delivered[r] || v.lists[schema.GroupResource{Group: r.Group, Resource: r.Resource}]
	// An operator that is marked and has no reconciles may have controllers that cannot be marked.
	return seen && (!v.marked || v.writes && len(v.reconciles) == 0)
}

// reconciled looks for a reconcile of an object. A reconcile has no kind, so if objects of several kinds have the same name, the name of
// the controller decides, which is by default that of the kind.
func (v *evidence) reconciled(s Subject, others []Subject) bool {
	controllers := v.reconciles[[2]string{s.Resource.Namespace, s.Resource.Name}]
	if len(controllers) == 0 {
		return false
	}
	isOf := func(kind string) bool {
		return slices.ContainsFunc(controllers, func(name string) bool { return strings.Contains(plain(name), plain(kind)) })
	}
	if isOf(s.Kind.Kind) {
		return true
	}
	return !slices.ContainsFunc(others, func(other Subject) bool {
		sameName := other.Resource.Namespace == s.Resource.Namespace && other.Resource.Name == s.Resource.Name
		return sameName && other.Kind != s.Kind && isOf(other.Kind.Kind)
	})
}

func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}
