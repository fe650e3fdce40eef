// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
)

// timedRead is what a reconcile read, and when.
type timedRead struct {
	lens.Read
	at time.Time
}

// isRead reports whether a request reads objects for a reconcile. Such reads bypass the cache: of unstructured objects,
// for example, or through an APIReader.
func isRead(r *lens.Request) bool {
	return r.Reconcile != 0 && r.Resource.Subresource == "" && (r.Verb == "get" || r.Verb == "list")
}

// liveRead returns the read that a request is. Its kind is empty if no object of the resource was seen yet: a refusal
// contains none, and neither does the description of a list.
func (t *Teller) liveRead(r *lens.Request) *lens.Read {
	in := r.Resource
	kind := t.kindOf[schema.GroupResource{Group: in.Group, Resource: in.Resource}]
	return &lens.Read{Reconcile: r.Reconcile, Group: in.Group, Version: in.Version, Kind: kind, Namespace: in.Namespace, Name: in.Name}
}

// read notes what a reconcile read. Marks and requests take different ways, so they may arrive in another order.
func (t *Teller) read(r *lens.Read, at, answered time.Time) {
	p := t.running[r.Reconcile]
	if p == nil {
		return
	}
	if answered.After(p.last) {
		p.last = answered
	}
	if len(p.reads) == maxReads {
		return
	}
	place := len(p.reads)
	for place > 0 && p.reads[place-1].at.After(at) {
		place--
	}
	p.reads = slices.Insert(p.reads, place, timedRead{*r, at})
}

// learnKind finds out which kind a controller reconciles: reconcilers read their object first.
func (t *Teller) learnKind(p *pass) {
	for _, read := range p.reads {
		if read.Name == p.name && read.Namespace == p.namespace {
			if read.Kind == "" {
				break // what it read after that may be another object with this name
			}
			t.kind[p.controller] = read.Kind + "." + read.Group
			p.record.Object.Kind, p.record.Object.Group, p.record.Object.Version = read.Kind, read.Group, read.Version
			return
		}
	}
	if known, ok := t.kind[p.controller]; ok {
		p.record.Object.Kind, p.record.Object.Group, _ = strings.Cut(known, ".")
	}
}
