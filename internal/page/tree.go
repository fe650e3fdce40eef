// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/tree"
)

// object is an object in messages to the page. It has no field for contents, so those of a Secret cannot get there.
type object struct {
	UID        types.UID   `json:"uid"`
	Group      string      `json:"group,omitempty"`
	Kind       string      `json:"kind"`
	Namespace  string      `json:"namespace,omitempty"`
	Name       string      `json:"name"`
	Owners     []types.UID `json:"owners,omitempty"`
	Created    time.Time   `json:"created"`
	Generation int64       `json:"generation,omitempty"`
	Fleet      bool        `json:"fleet,omitempty"`
	Spent      bool        `json:"spent,omitempty"`
	State      string      `json:"state"`
	Status     string      `json:"status,omitempty"`
	Detail     string      `json:"detail,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Message    string      `json:"message,omitempty"`
	Conditions []condition `json:"conditions,omitempty"`
}

type condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

var stateNames = map[tree.State]string{tree.Plain: "plain", tree.Good: "good", tree.Busy: "busy", tree.Bad: "bad", tree.Paused: "paused"}

// treeMessage holds the changes of the tree; everything, if whole is set.
type treeMessage struct {
	// Instance and Title are set in whole messages.
	Instance string      `json:"instance,omitempty"`
	Title    string      `json:"title,omitempty"`
	Revision uint64      `json:"revision"`
	Whole    bool        `json:"whole,omitempty"`
	Objects  []object    `json:"objects,omitempty"`
	Removed  []types.UID `json:"removed,omitempty"`
	// Recorded reports whether there are records to ask for.
	Recorded bool `json:"recorded"`
	// Traffic and Rights report whether these views exist, and Until is the end of the recording that is shown.
	Traffic bool      `json:"traffic,omitempty"`
	Rights  bool      `json:"rights,omitempty"`
	Until   time.Time `json:"until,omitzero"`
}

func (s *Server) treeSince(revision uint64) treeMessage {
	delta := s.options.Tree.Since(revision)
	message := treeMessage{
		Revision: delta.Revision, Whole: delta.Whole, Removed: delta.Removed, Recorded: s.options.Records != nil || s.options.Operator != nil,
	}
	if delta.Whole {
		message.Instance, message.Title = s.instance, s.options.Title
		message.Traffic, message.Rights, message.Until = s.options.Traffic != nil, s.options.Rights != nil, s.options.Until
	}
	for _, o := range delta.Objects {
		message.Objects = append(message.Objects, describe(o))
	}
	slices.SortFunc(message.Objects, func(a, b object) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
	return message
}

func describe(o tree.Object) object {
	result := object{
		UID: o.UID, Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Owners: o.Owners, Created: o.Created,
		Generation: o.Generation, Fleet: o.Fleet, Spent: o.Spent, State: stateNames[o.State], Status: o.Status, Detail: o.Detail,
		Reason: o.Reason, Message: o.Message,
	}
	for _, c := range o.Conditions {
		result.Conditions = append(result.Conditions, condition(c))
	}
	return result
}

func (s *Server) serveTree(w http.ResponseWriter, _ *http.Request) { answer(w, s.treeSince(0)) }
