// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
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
