// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/page"
	"github.com/opdock/opdock/why"
)

// plurals are the resources of kinds.
var plurals = map[string]string{kindApp: "appservices", kindDeployment: "deployments", "Service": "services"}

// send adds the traffic of a reconcile. Failed reconciles were refused a Secret.
func (w *World) send(r *why.Record) {
	for _, cause := range r.Causes {
		if cause.Object == nil {
			continue
		}
		x := exchange(cause.Seen, "watch", *cause.Object)
		x.Event = "MODIFIED"
		if cause.Write != nil {
			x.Note = "own write"
		}
		w.Traffic.Add(x)
	}
	for i := range r.Writes {
		one := &r.Writes[i]
		x := exchange(one.At, one.Verb, one.Object)
		x.Subresource, x.Status, x.Duration, x.Bytes = one.Subresource, http.StatusOK, one.Duration, 2300
		x.Controller, x.For = r.Controller, &r.Object
		if one.NoChange {
			x.Note = "no change"
		}
		w.Traffic.Add(x)
	}
	if r.Outcome == why.Failed {
		x := exchange(r.Start.Add(time.Millisecond), "get", why.Object{Kind: "Secret", Namespace: Namespace, Name: r.Object.Name})
		x.Resource, x.Status, x.Refused, x.Duration, x.Bytes = "secrets", http.StatusForbidden, true, time.Millisecond, 310
		x.Message = `secrets "` + r.Object.Name + `" is forbidden: User "system:serviceaccount:shop:operator" cannot get resource "secrets"`
		x.Controller, x.For = r.Controller, &r.Object
		w.Traffic.Add(x)
	}
}

func exchange(at time.Time, verb string, o why.Object) page.Exchange {
	resource := plurals[o.Kind]
	if resource == "" {
		resource = strings.ToLower(o.Kind) + "s"
	}
	return page.Exchange{At: at, Verb: verb, Group: o.Group, Resource: resource, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// Rights is a report on the rights of a made-up operator, as opdock rbac -o json prints it.
func Rights(context.Context) (any, error) { return json.RawMessage(report), nil }

const report = `{
  "recordings": [{"name": "this session", "requests": 1342}],
  "identity": "system:serviceaccount:shop:operator",
  "granted": "ClusterRole manager-role",
  "needs": [
    {"verb": "get", "group": "", "resource": "secrets", "granted": false, "proposed": false, "refused": true, "evidence": {"requests": 3, "refused": 3, "last": "2026-01-02T03:04:05Z",
      "recording": "this session", "request": 812, "reconcile": {"id": 31, "controller": "appservice", "namespace": "default", "name": "cart"}}},
    {"verb": "update", "group": "app.example.com", "resource": "appservices/finalizers", "implied": true, "granted": false, "proposed": true,
      "why": ["a write sets blockOwnerDeletion in an owner reference to an object of this kind"], "evidence": {"requests": 12, "last": "2026-01-02T03:04:05Z"}},
    {"verb": "list", "group": "app.example.com", "resource": "appservices", "granted": true, "proposed": true, "evidence": {"requests": 1, "last": "2026-01-02T03:04:05Z"}},
    {"verb": "watch", "group": "app.example.com", "resource": "appservices", "granted": true, "proposed": true,
      "why": ["an informer: 214 reads were answered from its cache, which needs list and watch, not get"], "evidence": {"requests": 2, "last": "2026-01-02T03:04:05Z"}},
    {"verb": "patch", "group": "app.example.com", "resource": "appservices/status", "granted": true, "proposed": true, "evidence": {"requests": 240, "last": "2026-01-02T03:04:05Z"}},
    {"verb": "list", "group": "apps", "resource": "deployments", "granted": true, "proposed": true, "evidence": {"requests": 1, "last": "2026-01-02T03:04:05Z"}},
    {"verb": "watch", "group": "apps", "resource": "deployments", "granted": true, "proposed": true, "evidence": {"requests": 2, "last": "2026-01-02T03:04:05Z"}},
    {"verb": "patch", "group": "apps", "resource": "deployments", "granted": true, "proposed": true, "evidence": {"requests": 1086, "last": "2026-01-02T03:04:05Z",
      "recording": "this session", "request": 1340, "reconcile": {"id": 92, "controller": "appservice", "namespace": "default", "name": "shop"}}},
    {"verb": "create", "group": "", "resource": "events", "part": "events", "granted": true, "proposed": true, "evidence": {"requests": 8, "last": "2026-01-02T03:04:05Z"}}
  ],
  "findings": [
    {"type": "missing", "group": "app.example.com", "resource": "appservices/finalizers", "verbs": ["update"]},
    {"type": "refused", "group": "", "resource": "secrets", "verbs": ["get"]},
    {"type": "unused", "group": "apps", "resource": "deployments", "verbs": ["create", "update", "delete"], "from": "ClusterRole manager-role", "markers": ["internal/controller/app.go:31"]},
    {"type": "unused", "group": "", "resource": "services", "verbs": ["get", "list", "watch"], "from": "ClusterRole manager-role"},
    {"type": "broader", "group": "", "resource": "events", "verbs": ["create"], "from": "ClusterRole manager-role", "message": "the whole cluster, used only in namespace default"},
    {"type": "kept", "group": "coordination.k8s.io", "resource": "leases", "verbs": ["get", "create", "update"], "from": "Role leader-election-role", "namespace": "shop", "message": "leader election"}
  ],
  "proposal": [],
  "notes": ["rights whose requests were all refused are proposed only with --include-refused"]
}`
