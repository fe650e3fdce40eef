// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lensview

import (
	"cmp"
	"context"
	"net/http"
	"sync"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/internal/rights"
	"github.com/opdock/opdock/why"
)

// keptReconciles is the number of reconciles that are kept, to find the sender of requests.
const keptReconciles = 4096

// View shows a lens on the page.
type View struct {
	// Traffic is for the page.
	Traffic *page.Traffic
	// Grants reads the granted rights; nil if they are unknown.
	Grants Grants
	// Earlier are the recordings of earlier sessions, which count for rights, too.
	Earlier []string

	rights rightsView

	mutex     sync.Mutex
	recording *rights.Recording
	totals    func() lens.Totals
	// reconciles holds the latest reconciles by their IDs; order is the order in which they began.
	reconciles map[uint64]*lens.Reconcile
	order      []uint64
}

// New returns a view of something that is about to begin.
func New(header lens.Header) *View {
	return &View{
		Traffic: page.NewTraffic(), recording: rights.Begin("this session", header), reconciles: map[uint64]*lens.Reconcile{},
		totals: func() lens.Totals { return lens.Totals{} },
	}
}

// Follow shows the events of a lens until the lens is closed or the context ends.
func (v *View) Follow(ctx context.Context, stream *lens.Stream) {
	v.mutex.Lock()
	v.totals = stream.Totals
	v.mutex.Unlock()
	for event, lost := range stream.Follow(ctx, 0) {
		v.mutex.Lock()
		v.recording.Missing += lost
		v.mutex.Unlock()
		v.see(event)
	}
}

func (v *View) see(e *lens.Event) {
	v.mutex.Lock()
	v.recording.See(e)
	if e.Process != nil && e.Process.Identity != "" {
		v.recording.Header.Identity = e.Process.Identity
	}
	if e.Reconcile != nil && !e.Reconcile.Ended {
		v.began(e.Reconcile)
	}
	exchange, ok := v.exchangeOf(e)
	v.mutex.Unlock()
	if ok {
		v.Traffic.Add(exchange)
	}
}

func (v *View) began(r *lens.Reconcile) {
	if len(v.order) == keptReconciles {
		for _, id := range v.order[:keptReconciles/4] {
			delete(v.reconciles, id)
		}
		v.order = append(v.order[:0], v.order[keptReconciles/4:]...)
	}
	v.reconciles[r.ID] = r
	v.order = append(v.order, r.ID)
}

// exchangeOf returns the traffic of an event for the page. A watch counts when it is opened;
// bookmarks do not count.
func (v *View) exchangeOf(e *lens.Event) (page.Exchange, bool) {
	switch {
	case e.Request != nil && e.Request.Verb == "watch" && !e.Request.Open && e.Request.Status == http.StatusOK && e.Request.Fault == "":
		return page.Exchange{}, false // the end of one that was opened
	case e.Request != nil:
		return v.requestOf(e), true
	case e.Delivery != nil && e.Delivery.Type != "BOOKMARK":
		return deliveryOf(e), true
	}
	return page.Exchange{}, false
}

func (v *View) requestOf(e *lens.Event) page.Exchange {
	r := e.Request
	x := page.Exchange{
		At: e.At, Verb: r.Verb, Group: r.Resource.Group, Resource: r.Resource.Resource, Subresource: r.Resource.Subresource, Path: r.Path,
		Namespace: r.Resource.Namespace, Name: r.Resource.Name, Status: r.Status, Bytes: r.BytesIn + r.BytesOut, Refused: r.Refused(),
	}
	if !r.Open {
		x.Duration = r.Duration
	}
	if r.Object != nil {
		x.Kind, x.Name = r.Object.Kind, r.Object.Name
	}
	switch {
	case r.Fault != "":
		x.Refused, x.Message = true, "fault: "+r.Fault // it is not what the server did
	case x.Refused:
		x.Message = cmp.Or(r.Message, r.Reason, r.Error)
	case r.DryRun:
		x.Note = "dry run"
	case r.Change != nil && r.Change.None:
		x.Note = "no change"
	case r.Verb == "list" && r.Query != nil && r.Query.Limit == 0 && r.Query.ResourceVersion == "":
		x.Note = "no limit"
	}
	if by := v.reconciles[r.Reconcile]; by != nil {
		x.Controller = by.Controller
		x.For = &why.Object{Group: by.Group, Kind: by.Kind, Namespace: by.Namespace, Name: by.Name}
	}
	return x
}

func deliveryOf(e *lens.Event) page.Exchange {
	d := e.Delivery
	x := page.Exchange{
		At: e.At, Verb: "watch", Event: d.Type, Group: d.Resource.Group, Resource: d.Resource.Resource, Subresource: d.Resource.Subresource,
		Namespace: d.Resource.Namespace, Refused: d.Type == "ERROR",
	}
	if d.Object != nil {
		x.Kind, x.Namespace, x.Name = d.Object.Kind, d.Object.Namespace, d.Object.Name
	}
	switch {
	case d.Fault != "":
		x.Refused, x.Message = true, "fault: "+d.Fault
	case d.Initial:
		x.Note = "initial"
	case d.Write != 0:
		x.Note = "own write"
	case d.Change != nil && d.Change.None:
		x.Note = "no change"
	}
	return x
}
