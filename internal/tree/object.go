// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// State is the state of an object at a glance.
type State int

const (
	// Plain objects are neither ready nor not, such as a Service.
	Plain State = iota
	// Good objects are as they should be.
	Good
	// Busy objects are on their way.
	Busy
	// Bad objects do not get any further.
	Bad
	// Paused objects are suspended on purpose.
	Paused
)

// Object holds what is shown of an object.
type Object struct {
	Group, Kind     string
	Namespace, Name string
	UID             types.UID
	// Owners are the objects it belongs to, its controller first.
	Owners     []types.UID
	Created    time.Time
	Generation int64
	Deleting   bool
	// Fleet marks the kinds of the fleet, whose objects are where trees begin.
	Fleet bool
	// Spent marks what is kept only to go back to: revisions, and ReplicaSets without pods.
	Spent bool

	State State
	// Status is how it is, in a word or two.
	Status string
	// Detail is what else is worth knowing.
	Detail string
	// Reason and Message contain why it is not ready, for programs and for people.
	Reason, Message string
	// Conditions are the conditions of the object, in its order.
	Conditions []Condition
}

// Condition is what kinds of all sorts have in common about their conditions.
type Condition struct {
	Type, Status    string
	Reason, Message string
	Since           time.Time
}

// Event is what is shown of an event.
type Event struct {
	UID     types.UID
	Time    time.Time
	Warning bool
	// Regarding is the object that it is about.
	Regarding  types.UID
	Kind, Name string
	Reason     string
	Note       string
	Count      int32
}
