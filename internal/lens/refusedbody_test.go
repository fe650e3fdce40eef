// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRefusedBodies has writes that are refused, and that show what they are about only in their body.
func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	const (
		maps  = "/api/v1/namespaces/shop/configmaps"
		owned = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web","ownerReferences":[{"apiVersion":"example.com/v1","kind":"Shop","name":"web","uid":"u","blockOwnerDeletion":true}]}}`
		role  = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"web"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`
	)
	finalizers := `configmaps "web" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`
	for name, test := range map[string]struct {
		method, path, contentType, body string
		code                            int32
		message                         string
		want                            string
	}{
		"a conflict":          {http.MethodPost, maps, "application/json", owned, 409, "exists", "create configmaps shop/web: 1 failed"},
		"no right to send it": {http.MethodPost, maps, "application/json", owned, 403, `User "u" cannot create resource "configmaps" in API group ""`, "create configmaps shop/web: 1 forbidden"},
		"an owner":            {http.MethodPost, maps, "application/json", owned, 403, finalizers, "create configmaps shop/web: 1 failed, update shops/finalizers: 1 forbidden"},
		"an owner, by apply":  {http.MethodPatch, maps + "/web", "application/apply-patch+yaml", owned, 403, finalizers, "apply configmaps shop/web: 1 failed, update shops/finalizers: 1 forbidden"},
		"an owner, by patch":  {http.MethodPatch, maps + "/web", "application/merge-patch+json", `{"data":{"a":"b"}}`, 403, finalizers, "patch configmaps shop/web: 1 forbidden"},
		"no right to create, by apply": {
			http.MethodPatch, maps + "/web", "application/apply-patch+yaml", owned, 403,
			`configmaps "web" is forbidden: User "u" cannot create resource "configmaps" in API group "" in the namespace "shop"`,
			"apply configmaps shop/web: 1 failed, create configmaps/: 1 forbidden",
		},
		"no right to create, by update": {
			http.MethodPut, maps + "/web", "application/json", owned, 403, `configmaps "web" is forbidden: User "u" cannot create resource "configmaps" in API group "" in the namespace "shop"`,
			"create configmaps/: 1 forbidden, update configmaps shop/web: 1 failed",
		},
		"no right to create, in the words of older servers": {
			http.MethodPatch, maps + "/web", "application/apply-patch+yaml", owned, 403, `configmaps "web" is forbidden: `,
			"apply configmaps shop/web: 1 failed, create configmaps/: 1 forbidden",
		},
		"no right to apply": {
			http.MethodPatch, maps + "/web", "application/apply-patch+yaml", owned, 403, `configmaps "web" is forbidden: User "u" cannot patch resource "configmaps" in API group ""`,
			"apply configmaps shop/web: 1 forbidden",
		},
		"a quota, by apply": {
			http.MethodPatch, maps + "/web", "application/apply-patch+yaml", owned, 403, `configmaps "web" is forbidden: exceeded quota: small`, "apply configmaps shop/web: 1 failed",
		},
		"a webhook, by apply": {
			http.MethodPatch, maps + "/web", "application/apply-patch+yaml", owned, 403,
			`admission webhook "w" denied the request: User "u" cannot create resource "configmaps" here`, "apply configmaps shop/web: 1 failed",
		},
		"a role": {
			http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/roles", "application/json", role, 403, `user "u" is attempting to grant RBAC permissions not currently held:`,
			"create roles shop/web: 1 failed, escalate roles/: 1 forbidden, get pods/: 1 forbidden",
		},
		"a generated name": {http.MethodPost, maps, "application/json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"web-"}}`, 409, "exists", "create configmaps shop/: 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(int(test.code))
				_ = json.NewEncoder(w).Encode(metav1.Status{
					TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: test.code, Message: test.message, Reason: metav1.StatusReasonAlreadyExists,
				})
			})
			s.read(s.request(test.method, test.path, test.body, "Content-Type", test.contentType))
			r := s.lastRequest()
			said := func(u *Use) string {
				if u.Forbidden > 0 {
					return fmt.Sprintf("%d forbidden", u.Forbidden)
				}
				return fmt.Sprintf("%d failed", u.Failed)
			}
			var got []string
			for _, u := range s.lens.Stream().Totals().Uses {
				if u.Implied == "" {
					got = append(got, fmt.Sprintf("%s %s %s/%s: %s", r.Verb, r.Resource.Resource, r.Resource.Namespace, r.Resource.Name, said(u)))
				} else {
					got = append(got, fmt.Sprintf("%s %s/%s: %s", u.Verb, u.Resource, u.Subresource, said(u)))
				}
			}
			slices.Sort(got)
			if all := strings.Join(got, ", "); all != test.want {
				t.Errorf("got %s, want %s", all, test.want)
			}
		})
	}
}
