// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The messages are those of an API server.
func TestWhatLacksARight(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		verb, message string
		want          bool
	}{
		"a right":           {"create", `pods is forbidden: User "system:serviceaccount:a:b" cannot create resource "pods" in API group "" in the namespace "a"`, true},
		"with a reason":     {"patch", `nodes "n" is forbidden: User "u" cannot patch resource "nodes" in API group "" at the cluster scope: RBAC: clusterrole "x" not found`, true},
		"a path":            {"post", `forbidden: User "u" cannot post path "/metrics"`, true},
		"impersonation":     {"update", `users "x" is forbidden: User "u" cannot impersonate resource "users" in API group "" at the cluster scope`, true},
		"escalation":        {"create", `roles "r" is forbidden: user "u" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:`, true},
		"aggregation":       {"create", `clusterroles "r" is forbidden: must have cluster-admin privileges to use the aggregationRule`, true},
		"finalizers":        {"create", `pods "p" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`, true},
		"an owner":          {"update", `pods "p" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>`, true},
		"a certificate":     {"update", `certificatesigningrequests "c" is forbidden: user not permitted to approve requests with signerName "a/b"`, true},
		"no message":        {"create", "", true},
		"a read":            {"list", "forbidden", true},
		"a namespace":       {"create", `configmaps "c" is forbidden: unable to create new content in namespace a because it is being terminated`, false},
		"a quota":           {"create", `pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1`, false},
		"pod security":      {"create", `pods "p" is forbidden: violates PodSecurity "restricted:latest": privileged`, false},
		"a webhook":         {"create", `admission webhook "w.example.com" denied the request: no`, false},
		"a webhook's words": {"create", `admission webhook "w.example.com" denied the request: User "u" cannot create resource "pods"`, false},
		"a policy":          {"create", `pods "p" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := &Request{Verb: test.verb, Resource: Resource{Resource: "pods"}, Status: http.StatusForbidden, Message: test.message}
			totals := newTotals()
			totals.add(&Event{At: time.Now(), Request: request})
			u := totals.clone().Uses[0]
			if got := u.Forbidden == 1 && u.Failed == 0 && u.ForbiddenAt != nil; got != test.want || u.Forbidden+u.Failed != 1 {
				t.Errorf("it is counted as %+v", u)
			}
		})
	}
	if (&Request{Status: http.StatusNotFound}).LacksRight() {
		t.Error("what does not exist needs no right")
	}
}

// TestRefusedConversations come from the API server, or from the application behind it.
func TestRefusedConversations(t *testing.T) {
	t.Parallel()
	status := func(reason, message string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"reason":%q,"code":403}`, message, reason)
	}
	const (
		proxy = "/api/v1/namespaces/a/services/web/proxy/metrics"
		lacks = `services "web" is forbidden: User "u" cannot get resource "services/proxy" in API group "" in the namespace "a"`
	)
	for name, test := range map[string]struct {
		method, path, contentType, body string
		want                            bool
	}{
		"the API server":             {http.MethodGet, proxy, "application/json", status("Forbidden", lacks), true},
		"the API server, for exec":   {http.MethodPost, "/api/v1/namespaces/a/pods/b/exec?command=ls", "application/json", status("Forbidden", `pods "b" is forbidden: User "u" cannot create resource "pods/exec" in API group "" in the namespace "a"`), true},
		"impersonation":              {http.MethodGet, proxy, "application/json", status("Forbidden", `users "x" is forbidden: User "u" cannot impersonate resource "users" in API group "" at the cluster scope`), true},
		"an application":             {http.MethodGet, proxy, "text/html", "<h1>403 password</h1>", false},
		"an application in JSON":     {http.MethodGet, proxy, "application/json", `{"error":"the password is wrong"}`, false},
		"nothing":                    {http.MethodPost, proxy, "application/json", "", false},
		"an API behind the proxy":    {http.MethodGet, proxy, "application/json", status("Forbidden", `pods is forbidden: User "v" cannot list resource "pods" in API group "" at the cluster scope`), false},
		"a Status for other reasons": {http.MethodGet, proxy, "application/json", status("", "password"), false},
		"more than is read":          {http.MethodGet, proxy, "application/json", status("Forbidden", lacks+strings.Repeat(" ", maxErrorText)), false},
		"admission of a WebSocket":   {http.MethodGet, "/api/v1/namespaces/a/pods/b/exec", "application/json", status("Forbidden", `admission webhook "w" denied the request: no`), false},
		"admission":                  {http.MethodPost, "/api/v1/namespaces/a/pods/b/exec", "application/json", status("Forbidden", `admission webhook "w" denied the request: no`), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.contentType)
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, test.body)
			})
			if got := s.read(s.request(test.method, test.path, "")); got != test.body {
				t.Errorf("the client received %q", got)
			}
			if r := s.lastRequest(); r.LacksRight() != test.want || strings.Contains(r.Message, "password") {
				t.Errorf("recorded is %+v", r)
			}
		})
	}
}
