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

func TestPlacesOfForbiddenRequests(t *testing.T) {
	t.Parallel()
	s := newStream(defaultKept)
	for i, place := range []Resource{{Resource: "pods"}, {Resource: "pods", Namespace: "a"}, {Resource: "pods", Namespace: "b"}} {
		status := http.StatusOK
		if i != 1 {
			status = http.StatusForbidden
		}
		s.add(Event{At: time.Now(), Request: &Request{ID: uint64(i + 1), Verb: "list", Resource: place, Status: status}})
	}
	totals := s.Totals()
	u := totals.Uses[0]
	if u.Count != 3 || u.Forbidden != 2 || u.ClusterWide != 1 || len(u.Namespaces) != 2 || u.Unnamed != 3 {
		t.Errorf("counted is %+v", u)
	}
	if at := u.ForbiddenAt; at == nil || at.ClusterWide != 1 || at.Namespaces["b"] != 1 || len(at.Namespaces) != 1 || at.Unnamed != 2 {
		t.Errorf("refused are %+v", at)
	}
}

func TestNamesInFieldSelectors(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		"": "", "spec.nodeName=a": "", "metadata.name=foo": "foo", "metadata.name==foo": "foo", "metadata.name=foo,metadata.namespace=ns": "foo",
		"metadata.namespace=ns,metadata.name=foo": "foo", "metadata.name!=foo": "", "metadata.name=": "", `metadata.name=a\,b`: "a,b", "metadata.name": "",
	} {
		totals := newTotals()
		totals.add(&Event{At: time.Now(), Request: &Request{Verb: "list", Resource: Resource{Resource: "pods", Namespace: "ns"}, Status: http.StatusOK, Query: &Query{FieldSelector: selector}}})
		u := totals.clone().Uses[0]
		if want == "" && (u.Unnamed != 1 || len(u.Names) > 0) || want != "" && (u.Unnamed != 0 || len(u.Names) != 1 || u.Names[want] != 1) {
			t.Errorf("%q counts as %+v", selector, u)
		}
	}
}
