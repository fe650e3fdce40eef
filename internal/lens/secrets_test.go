// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestWritesOfMetadata answers writes with the metadata of an object that was read as a whole before.
func TestWritesOfMetadata(t *testing.T) {
	t.Parallel()
	const metadata = `"metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"%d","annotations":{"copy":"%s"}}`
	for _, test := range []struct{ resource, whole, change string }{
		{"/api/v1/namespaces/b/secrets/a", `"apiVersion":"v1","kind":"Secret","data":{"password":"hunter2"}`, `"(hidden)">"(hidden)"`},
		{"/api/v1/namespaces/b/configmaps/a", `"apiVersion":"v1","kind":"ConfigMap","data":{"port":"80"}`, `"hunter3">"hunter4"`},
	} {
		s := newStage(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.Method {
			case http.MethodGet:
				fmt.Fprintf(w, "{"+test.whole+","+metadata+"}", 7, "hunter3")
			case http.MethodPatch:
				fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",`+metadata+"}", 8, "hunter4")
			case http.MethodPut:
				fmt.Fprintf(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata",`+metadata+"}", 7, "hunter3")
			}
		})
		change := func(method, verb string) *Change {
			s.read(s.request(http.MethodGet, test.resource, ""))
			s.read(s.request(method, test.resource, `{}`, "Content-Type", "application/merge-patch+json"))
			return s.lastOf(verb).Change
		}
		if c := change(http.MethodPut, "update"); c == nil || !c.None {
			t.Errorf("%s: the change of a write without effect is %+v", test.resource, c)
		}
		c := change(http.MethodPatch, "patch")
		if c == nil || len(c.Fields) != 1 || c.Fields[0].Path != "metadata.annotations.copy" || c.Fields[0].Old+">"+c.Fields[0].New != test.change {
			t.Errorf("%s: the change is %+v", test.resource, c)
		}
		if recorded, err := json.Marshal(s.events()); err != nil || strings.Contains(string(recorded), "hunter2") {
			t.Errorf("recorded is %s, %v", recorded, err)
		}
	}
}
