// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The operator writes a Deployment and gets an answer that differs from the last version that the lens has seen, and its
// managed fields name only the controller of Deployments as a writer in between.
func TestWritesBesideThoseOfOthers(t *testing.T) {
	t.Parallel()
	const first, second = "2026-01-01T12:00:01Z", "2026-01-01T12:00:02Z"
	entry := func(manager, subresource, at, fields string) string {
		return fmt.Sprintf(`{"manager":%q,"operation":"Update","apiVersion":"apps/v1","subresource":%q,"time":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`, manager, subresource, at, fields)
	}
	object := func(version, entries, rest string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		text := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","uid":"u","resourceVersion":%q,"managedFields":[%s]},%s}`, version, entries, rest)
		if err := json.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		return o
	}
	const (
		spec, status = `{"f:spec":{"f:replicas":{}}}`, `{"f:status":{"f:ready":{}}}`
		selector     = `{"f:spec":{"f:nodeSelector":{}}}`
	)
	created := object("1", entry("operator", "", first, spec), `"spec":{"replicas":1}`)
	for name, one := range map[string]struct {
		before, now *unstructured.Unstructured
		none        bool
	}{
		"all within a second": {created, object("3", entry("operator", "", first, spec)+","+entry("controller", "status", first, status), `"spec":{"replicas":2},"status":{"ready":1}`), false},
		"a field that it does not own, within a second": {
			created, object("2", entry("operator", "", first, spec)+","+entry("controller", "status", first, status), `"spec":{"replicas":1},"status":{"ready":1}`), true,
		},
		"the other was later": {created, object("2", entry("operator", "", first, spec)+","+entry("controller", "status", second, status), `"spec":{"replicas":1},"status":{"ready":1}`), true},
		"a part of what it owns as a whole": {
			object("1", entry("operator", "", first, selector), `"spec":{"nodeSelector":{"a":"1"}}`),
			object("3", entry("operator", "", first, selector)+","+entry("controller", "status", first, status), `"spec":{"nodeSelector":{"a":"2"}},"status":{"ready":1}`), false,
		},
		"it has removed a field of its own": {
			object("1", entry("operator", "", first, `{"f:spec":{"f:replicas":{},"f:paused":{}}}`), `"spec":{"replicas":1,"paused":true}`),
			object("3", entry("operator", "", first, spec)+","+entry("controller", "status", second, status), `"spec":{"replicas":1},"status":{"ready":1}`), false,
		},
		"it may have removed a field of another": {
			object("1", entry("kubectl", "", first, `{"f:spec":{"f:paused":{}}}`), `"spec":{"paused":true}`),
			object("3", entry("controller", "status", second, status), `"spec":{},"status":{"ready":1}`), false,
		},
		"it has never changed anything": {
			object("1", entry("kubectl", "", first, spec), `"spec":{"replicas":1}`),
			object("2", entry("kubectl", "", first, spec)+","+entry("controller", "status", first, status), `"spec":{"replicas":1},"status":{"ready":1}`), true,
		},
	} {
		r := &Request{Verb: "patch", Status: http.StatusOK, FieldManager: "operator", Resource: Resource{Group: "apps", Version: "v1", Resource: "deployments", Name: "web"}}
		c := changed(r, versionOf(one.before, nil, encodedJSON, false, time.Time{}), false, one.now, "")
		if c == nil || c.None != one.none || !one.none && len(c.Fields) == 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
