// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"net/http"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

// TestApplyThatMayNotCreate has an operator that may patch ConfigMaps, and applies one that does not exist.
func TestApplyThatMayNotCreate(t *testing.T) {
	place := lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "default"}
	named := place
	named.Name = "victory"
	applied := lens.Event{Request: &lens.Request{
		Verb: "apply", Resource: named, Status: http.StatusForbidden, Implies: []lens.Implied{{Verb: "create", Resource: place, Because: "created"}},
		Message: `configmaps "victory" is forbidden: User "ship" cannot create resource "configmaps" in API group "" in the namespace "default"`,
	}}
	granted := Granted{Source: "roles", Rules: []Rule{rule("role", "default", "", "configmaps", "patch")}}
	report := Compare(Merge([]*Recording{collected(t, 1, applied)}), granted, Options{})
	if got, want := found(report.Findings), "refused: create configmaps: created\n"; got != want {
		t.Errorf("found is %swant %s", got, want)
	}
	report = Compare(Merge([]*Recording{collected(t, 1, applied)}), granted, Options{IncludeRefused: true})
	if got := proposed(report); !strings.Contains(got, "resources=configmaps,verbs=create;patch") {
		t.Errorf("proposed is %s", got)
	}
}
