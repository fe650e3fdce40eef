// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"time"

	"github.com/opdock/opdock/why"
)

// Exchange is a request of an operator with its response, or a watch event. The page has its
// own type with only what it shows, so it does not depend on the observer of the operator.
type Exchange struct {
	// At is when the request arrived, or the event was delivered.
	At time.Time `json:"at"`
	// Verb is the verb of RBAC, or apply. Event is the type of a watch event, such as MODIFIED; empty for requests.
	Verb  string `json:"verb"`
	Event string `json:"event,omitempty"`
	// Resource is the plural name, with Path instead for requests that are not about resources.
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Path        string `json:"path,omitempty"`
	// Kind is empty if it is not known.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`

	// Status is the HTTP status, 0 if there was no answer.
	Status   int           `json:"status,omitempty"`
	Duration time.Duration `json:"duration,omitempty"`
	// Bytes is the size of both bodies.
	Bytes int64 `json:"bytes,omitempty"`
	// Refused means that there was no response, or an error; Message contains the reason.
	Refused bool   `json:"refused,omitempty"`
	Message string `json:"message,omitempty"`
	// Note names a peculiarity: a write that changed nothing, an unbounded list, an event of the operator's own
	// write.
	Note string `json:"note,omitempty"`
	// Controller and For identify the reconcile that sent the request, if it is known.
	Controller string      `json:"controller,omitempty"`
	For        *why.Object `json:"for,omitempty"`
}

const (
	// keptTraffic is the number of entries that are kept for pages that connect later.
	keptTraffic = 10_000
	// trafficBatch is the maximum size of a message, so a new page is not busy for long with one message.
	trafficBatch = 2000
)

// Traffic is what went over the wire lately. A nil Traffic has nothing. Its methods may be called from several goroutines.
type Traffic struct{ *feed[Exchange] }

// NewTraffic returns a place for exchanges.
func NewTraffic() *Traffic { return &Traffic{newFeed[Exchange](keptTraffic)} }

// trafficMessage is what went over the wire since the message before.
type trafficMessage struct {
	Exchanges []Exchange `json:"exchanges"`
	Lost      uint64     `json:"lost,omitempty"`
}

func (t *Traffic) since(seen uint64) (message trafficMessage, last uint64) {
	if t == nil {
		return message, seen
	}
	message.Exchanges, last, message.Lost = t.feed.since(seen, trafficBatch)
	return message, last
}

func (t *Traffic) next() <-chan struct{} {
	if t == nil {
		return nil
	}
	return t.feed.next()
}
