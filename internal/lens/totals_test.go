// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"net/http"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// TestGeneratedNames are no names: those of the next objects are others.
func TestGeneratedNames(t *testing.T) {
	t.Parallel()
	stored := &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Namespace: "ship-system", Name: "scan-x7f2k", GenerateName: "scan-"},
	}
	jobs := Resource{Group: "batch", Version: "v1", Resource: "jobs", Namespace: "ship-system", Name: "scan-x7f2k"}
	status, pods := jobs, Resource{Version: "v1", Resource: "pods", Namespace: "ship-system"}
	status.Subresource = "status"
	list := jobs
	list.Name = ""
	pod := Object{Kind: "Pod", Namespace: "ship-system", Name: "scan-x7f2k-9zzzz", Generated: true}
	log := pods
	log.Subresource, log.Name = "log", pod.Name
	fixed := pods
	fixed.Name = "fixed"
	role := Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Name: "scan-5tzk8"}
	madeRole := Event{Request: &Request{Verb: "create", Resource: role, Object: &Object{Kind: "ClusterRole", Name: role.Name, Generated: true}, Status: 201}}
	binding, boundHere := Resource{Group: role.Group, Version: "v1", Resource: "rolebindings", Namespace: "ship-system"}, role
	boundHere.Namespace = "ship-system"
	for name, test := range map[string]struct {
		before Event
		then   Request
		named  bool
	}{
		"deleted":          {Event{Request: &Request{Verb: "create", Resource: jobs, Object: nameOf(stored), Status: 201}}, Request{Verb: "delete", Resource: jobs, Status: 200}, false},
		"its status":       {Event{Request: &Request{Verb: "create", Resource: jobs, Object: nameOf(stored), Status: 201}}, Request{Verb: "patch", Resource: status, Status: 200}, false},
		"refused":          {Event{Request: &Request{Verb: "create", Resource: jobs, Object: nameOf(stored), Status: 201}}, Request{Verb: "delete", Resource: jobs, Status: 403}, false},
		"selected":         {Event{Request: &Request{Verb: "create", Resource: jobs, Object: nameOf(stored), Status: 201}}, Request{Verb: "list", Resource: list, Query: &Query{FieldSelector: "metadata.name=scan-x7f2k"}, Status: 200}, false},
		"from a watch":     {Event{Delivery: &Delivery{Resource: pods, Type: "ADDED", Object: &pod}}, Request{Verb: "get", Resource: log, Status: 200}, false},
		"bound":            {madeRole, Request{Verb: "create", Resource: binding, Status: 201, Implies: []Implied{{Verb: "bind", Resource: boundHere, Because: BindsUnknown}}}, false},
		"only read":        {Event{}, Request{Verb: "get", Resource: jobs, Object: nameOf(stored), Status: 200}, false},
		"another, a fixed": {Event{Delivery: &Delivery{Resource: pods, Type: "ADDED", Object: &pod}}, Request{Verb: "get", Resource: fixed, Status: 200}, true},
	} {
		totals := newTotals()
		totals.add(&test.before)
		totals.add(&Event{At: time.Now(), Request: &test.then})
		for _, u := range totals.clone().Uses {
			if u.Verb == "create" {
				continue
			}
			if named := len(u.Names) == 1 && u.Unnamed == 0; named != test.named || len(u.Names) > 0 && u.Unnamed > 0 {
				t.Errorf("%s: it is counted as %+v", name, u)
			}
			if at := u.ForbiddenAt; at != nil && (at.Unnamed != 1 || len(at.Names) > 0) {
				t.Errorf("%s: refused are %+v", name, at)
			}
		}
	}
}
