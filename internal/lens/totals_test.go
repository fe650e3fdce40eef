// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"net/http"
	"testing"
	"time"
)

// AlreadyExists is not a conflict, although it has the same status code: no other client has changed the object.
func TestConflictsAreCounted(t *testing.T) {
	totals := newTotals()
	for _, reason := range []string{"Conflict", "AlreadyExists", "AlreadyExists"} {
		totals.add(&Event{At: time.Now(), Request: &Request{Verb: "create", Resource: Resource{Resource: "configmaps"}, Status: http.StatusConflict, Reason: reason}})
	}
	if got := totals.clone().Uses[0]; got.Conflicts != 1 || got.Failed != 2 {
		t.Errorf("%d conflicts, and %d failed otherwise", got.Conflicts, got.Failed)
	}
}
