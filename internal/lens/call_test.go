// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

func TestSourceOfWrites(t *testing.T) {
	const header = "internal%2Fpass%2Fpass.go:78,cmd%2Fa+b%2C.go:9"
	want := []string{"internal/pass/pass.go:78", "cmd/a b,.go:9"}
	for _, test := range []struct {
		method, target, header string
		want                   []string
	}{
		{"POST", "/api/v1/namespaces/a/configmaps", header, want},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/b/status", header, want},
		{"DELETE", "/api/v1/namespaces/a/configmaps/b", header, want},
		{"POST", "/api/v1/namespaces/a/configmaps", "", nil},
		{"POST", "/api/v1/namespaces/a/configmaps", strings.Repeat("x", maxSource+1), nil},
		{"POST", "/api/v1/namespaces/a/configmaps", "%zz,ok.go:1", []string{"ok.go:1"}},
		// What is no write has none, whatever a client says.
		{"GET", "/api/v1/namespaces/a/configmaps/b", header, nil},
		{"POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", header, nil},
		{"POST", "/api/v1/namespaces/a/configmaps?dryRun=All", header, nil},
	} {
		request := httptest.NewRequestWithContext(t.Context(), test.method, test.target, http.NoBody)
		request.Header.Set(SourceHeader, test.header)
		if got := describe(request); !slices.Equal(got.Source, test.want) {
			t.Errorf("%s %s: got %q, want %q", test.method, test.target, got.Source, test.want)
		}
	}
}

func TestImpersonationNeedsRights(t *testing.T) {
	t.Parallel()
	s := newStage(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"}}`)
	})
	for _, test := range []struct {
		method string
		header []string
		want   string
	}{
		{http.MethodGet, []string{"Impersonate-User", "jane"}, ""},
		{http.MethodGet, []string{"Impersonate-Group", "admins"}, ""},
		{
			http.MethodPatch, []string{"Impersonate-User", "jane", "Impersonate-Group", "admins", "Impersonate-Uid", "5", "Impersonate-Extra-Shop.example%2fscopes", "view"},
			"groups./:admins, uids.authentication.k8s.io/:5, userextras.authentication.k8s.io/shop.example/scopes:view, configmaps./:",
		},
	} {
		s.read(s.request(test.method, "/api/v1/namespaces/b/configmaps/a", "{}", append(test.header, "Content-Type", "application/apply-patch+yaml")...))
		verb := map[string]string{http.MethodGet: "get", http.MethodPatch: "apply"}[test.method]
		var got []string
		for _, right := range s.lastOf(verb).Implies {
			got = append(got, fmt.Sprintf("%s.%s/%s:%s", right.Resource.Resource, right.Resource.Group, right.Resource.Subresource, right.Resource.Name))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%v: got %q", test.header, got)
		}
	}
	uses := s.lens.Stream().Totals().Uses
	if !slices.ContainsFunc(uses, func(u *Use) bool {
		return u.Verb == "impersonate" && u.Resource == "groups" && u.Names["admins"] == 1 && u.Implied != ""
	}) {
		t.Errorf("counted are %+v", uses)
	}
}
