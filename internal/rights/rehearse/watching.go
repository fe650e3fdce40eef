// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

// watching counts what an operator does.
type watching struct {
	// active receives something when the operator has done something.
	active chan struct{}
	stop   context.CancelFunc

	mutex    sync.Mutex
	any      bool
	requests int
	// refused lacked a right of the operator, and denied did not: it may have lacked one of a user that the operator impersonates.
	refused, denied []Refusal
	// lacked says that a request lacked a right, in any act.
	lacked bool
	shown  *evidence
	// unknownOwners are writes that were refused because the API server did not know the kind of an owner yet, and when.
	unknownOwners map[write]time.Time
	// locks are the objects by which the operator elects a leader, other than leases.
	locks map[lens.Resource]bool
}

func newWatching(stream *lens.Stream) *watching {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{active: make(chan struct{}, 1), stop: cancel, shown: newEvidence()}
	go func() {
		for event, lost := range stream.Follow(ctx, 0) {
			if w.count(event) || lost > 0 {
				select {
				case w.active <- struct{}{}:
				default:
				}
			}
		}
	}()
	return w
}

// write is what the operator may try again.
type write struct {
	verb     string
	resource lens.Resource
}

// unknownOwner is how the API server refuses a write whose owner has a kind that it does not know. This is no lack of a right.
var unknownOwner = regexp.MustCompile(`"([^"]*)" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping`)

// ownersKnownAfter is how long the API server may take to know the kind of a new CRD as that of an owner.
const ownersKnownAfter = 30 * time.Second

// followOwners takes notice of a write whose owner has an unknown kind, and of its success later.
func (w *watching) followOwners(at time.Time, r *lens.Request) {
	one := write{r.Verb, r.Resource}
	if r.Status < http.StatusBadRequest {
		delete(w.unknownOwners, one)
		return
	}
	if match := unknownOwner.FindStringSubmatch(r.Message); match != nil && r.Status == http.StatusForbidden {
		one.resource.Name = match[1] // a request to create an object does not have it
		if w.unknownOwners == nil {
			w.unknownOwners = map[write]time.Time{}
		}
		w.unknownOwners[one] = at
	}
}

// awaitsOwners reports whether a write may succeed soon that was refused because the kind of an owner was unknown.
func (w *watching) awaitsOwners(now time.Time) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, at := range w.unknownOwners {
		if now.Sub(at) < ownersKnownAfter {
			return true
		}
	}
	return false
}

// neverEnds reports whether a resource changes constantly: leader election, and the heartbeats of nodes.
func neverEnds(r lens.Resource) bool { return r.Resource == "leases" || r.Resource == "nodes" }

// isLock reports whether a leader is elected by the object, which shows when it is renewed.
func (w *watching) isLock(r lens.Resource, object *lens.Object, change *lens.Change) bool {
	key := named(r, r.Namespace, r.Name)
	if object != nil {
		key = named(r, object.Namespace, object.Name)
	}
	if change.RenewsLeader() {
		if w.locks == nil {
			w.locks = map[lens.Resource]bool{}
		}
		w.locks[key] = true
	}
	return w.locks[key]
}

// count reports whether an event shows that the operator is busy.
func (w *watching) count(e *lens.Event) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.shown.add(e)
	switch {
	case e.Delivery != nil:
		return e.Delivery.Type != "BOOKMARK" && !neverEnds(e.Delivery.Resource) && !w.isLock(e.Delivery.Resource, e.Delivery.Object, e.Delivery.Change)
	case e.Request == nil:
		return e.Reconcile != nil
	}
	r := e.Request
	w.any = true
	if r.Verb != "watch" || r.Open {
		w.requests++
	}
	w.lacked = w.lacked || r.LacksRight()
	w.followOwners(e.At, r)
	refusal := Refusal{Verb: r.Verb, Resource: r.Resource, Message: r.Message}
	switch {
	case r.RefusedSender():
		w.refused = append(w.refused, refusal)
	case r.Status == http.StatusForbidden:
		w.denied = append(w.denied, refusal)
	}
	return !neverEnds(r.Resource) && !w.isLock(r.Resource, r.Object, r.Change)
}

func (w *watching) started() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.any
}

// wasRefused reports whether a request lacked a right, which explains why an operator does not go on.
func (w *watching) wasRefused() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.lacked
}

func (w *watching) refusals() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	all := slices.Concat(w.denied, w.refused)
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d requests were refused, one of them: %s)", len(all), all[len(all)-1].Message)
}

// take returns what was counted since the last time.
func (w *watching) take() (requests int, refused, denied []Refusal) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	requests, refused, denied = w.requests, w.refused, w.denied
	w.requests, w.refused, w.denied = 0, nil, nil
	return requests, refused, denied
}

// untouched returns the kinds of which the operator has reconciled no object, in the order of the subjects. All says that these are
// all kinds.
func (w *watching) untouched(subjects []Subject) (kinds []Kind, all bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	touched := map[Kind]bool{}
	var order []Kind
	existing := slices.DeleteFunc(slices.Clone(subjects), func(one Subject) bool { return one.LeftOut })
	for _, one := range subjects {
		if _, known := touched[one.Kind]; !known {
			order = append(order, one.Kind)
		}
		touched[one.Kind] = touched[one.Kind] || !one.LeftOut && w.shown.shows(one, existing)
	}
	for _, kind := range order {
		if !touched[kind] {
			kinds = append(kinds, kind)
		}
	}
	return kinds, len(order) > 0 && len(kinds) == len(order)
}
