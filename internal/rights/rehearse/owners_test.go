// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"net/http"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/lens"
)

// TestAnActWaitsForUnknownOwners has an API server that does not know a kind yet that owns an object, so the rights for that object
// were not tried.
func TestAnActWaitsForUnknownOwners(t *testing.T) {
	const unknown = `secrets "key" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion sea/v1 Kind Frigate: no matches`
	began := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	request := func(after time.Duration, verb, name string, status int, message string) *lens.Event {
		place := lens.Resource{Version: "v1", Resource: "secrets", Namespace: "default", Name: name}
		return &lens.Event{At: began.Add(after), Request: &lens.Request{Verb: verb, Resource: place, Status: status, Message: message}}
	}
	refused := request(0, "create", "", http.StatusForbidden, unknown)
	for name, test := range map[string]struct {
		events []*lens.Event
		after  time.Duration
		want   bool
	}{
		"nothing":               {},
		"another request":       {[]*lens.Event{request(0, "get", "key", http.StatusOK, "")}, time.Second, true},
		"refused":               {[]*lens.Event{refused}, 29 * time.Second, false},
		"refused long ago":      {[]*lens.Event{refused}, 30 * time.Second, true},
		"refused again":         {[]*lens.Event{refused, request(20*time.Second, "create", "", http.StatusForbidden, unknown)}, 40 * time.Second, false},
		"it succeeds":           {[]*lens.Event{refused, request(20*time.Second, "create", "key", http.StatusCreated, "")}, 20 * time.Second, true},
		"another object":        {[]*lens.Event{refused, request(1, "create", "other", http.StatusCreated, "")}, time.Second, false},
		"an apply":              {[]*lens.Event{request(0, "apply", "key", http.StatusForbidden, unknown)}, time.Second, false},
		"an apply that is made": {[]*lens.Event{request(0, "apply", "key", http.StatusForbidden, unknown), request(1, "apply", "key", http.StatusOK, "")}, time.Second, true},
		"a lack of rights": {[]*lens.Event{request(0, "create", "", http.StatusForbidden,
			`secrets "key" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`)}, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watching{shown: newEvidence()}
			for _, event := range test.events {
				w.count(event)
			}
			s := &stage{Options: &Options{}, watching: w, waited: true}
			if got := s.hasSettled(began.Add(test.after)); got != test.want {
				t.Errorf("the operator has settled: %t", got)
			}
		})
	}
}
