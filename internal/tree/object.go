// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// State summarises the state of an object.
type State int

const (
	// Plain objects have no readiness, such as a Service.
	Plain State = iota
	// Good objects are in their desired state.
	Good
	// Busy objects are in progress.
	Busy
	// Bad objects have failed or do not make progress.
	Bad
	// Paused objects are suspended on purpose.
	Paused
)

// Object holds the fields of an object that are shown.
type Object struct {
	Group, Kind     string
	Namespace, Name string
	UID             types.UID
	// Owners are the objects that own it, its controller first.
	Owners     []types.UID
	Created    time.Time
	Generation int64
	Deleting   bool
	// Fleet marks objects of the fleet's kinds. Trees begin with them.
	Fleet bool
	// Spent marks objects that exist only for a rollback: revisions, and ReplicaSets without pods.
	Spent bool

	State State
	// Status is the state in one or two words.
	Status string
	// Detail is additional information.
	Detail string
	// Reason and Message explain why it is not ready, for programs and for people.
	Reason, Message string
	// Conditions are the conditions of the object, in their order.
	Conditions []Condition
}

// Condition holds the fields that conditions of all kinds have in common.
type Condition struct {
	Type, Status    string
	Reason, Message string
	Since           time.Time
}

// Event holds the fields of an event that are shown.
type Event struct {
	UID     types.UID
	Time    time.Time
	Warning bool
	// Regarding is the object of the event.
	Regarding  types.UID
	Kind, Name string
	Reason     string
	Note       string
	Count      int32
}
