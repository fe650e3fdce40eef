// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Faults decides what happens to requests, responses and watch events in a lens. Its methods are called from many
// goroutines, and may block: only the request or event in question waits. The context ends when the client or the
// server gives up.
type Faults interface {
	// Request is called before a request is forwarded.
	Request(ctx context.Context, call *Call) Verdict
	// Answer is called when a response begins to arrive, before any of it is forwarded. The write has happened.
	Answer(ctx context.Context, call *Call, status int) Verdict
	// Deliver is called before a watch event is forwarded. It is called for the events of one watch in order.
	Deliver(ctx context.Context, watch *Call, delivery *Frame) Verdict
}

// Call is a request on its way.
type Call struct {
	// Request has what is known before the request is forwarded.
	Request Request
	// Body is the object in the body of a write, nil if there is none or it cannot be decoded.
	Body func() *unstructured.Unstructured
}

// Frame is an event of a watch on its way.
type Frame struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR; empty if it cannot be decoded.
	Type string
	// Object is nil if it cannot be decoded.
	Object *unstructured.Unstructured
}

// Verdict is what becomes of a request, an answer or a delivery. The zero Verdict passes it on.
type Verdict struct {
	Action Action
	// Answer replaces the answer, for the action Refuse.
	Answer *metav1.Status
	// Header is added to that answer, such as Retry-After.
	Header http.Header
	// AsOf is a resource version, for a list that passes: it is answered with what there was then, as far as the API server still
	// has it. Only a client that takes a list of any age may be shown an older one than it has seen.
	AsOf string
	// Say is the name of the fault in the recording.
	Say string
}

// Action is what is done.
type Action int

// The actions.
const (
	// Pass forwards it.
	Pass Action = iota
	// Refuse answers a request, or replaces its answer, by a Status.
	Refuse
	// Abort ends the request without an answer, as a broken connection would. A watch ends.
	Abort
	// Drop drops a watch event. The client never gets it, which is valid only if a later event supersedes it.
	Drop
	// End ends a watch in order, instead of passing the event on.
	End
)
