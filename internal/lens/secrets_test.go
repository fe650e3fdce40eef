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

func TestMessagesAboutSecrets(t *testing.T) {
	t.Parallel()
	const hidden = " (the rest is hidden: it may contain values of the Secret)"
	for _, test := range []struct {
		verb, resource string
		status         int
		answer, want   string
	}{
		{"apply", "secrets", 500, `{"message":"failed to create typed patch object: .stringData.pin: expected string, got &value.valueUnstructured{Value:482913}"}`, "failed to create typed patch object: .stringData.pin: expected string, got" + hidden},
		{"apply", "secrets", 500, `{"message":"482913"}`, "Internal Server Error" + hidden},
		{
			"create", "secrets", 422, `{"reason":"Invalid","message":"Secret \"a\" is invalid: data: Invalid value: \"482913\"","details":{"causes":[{"field":"data"},{"field":"data"},{"field":"type"}]}}`,
			"Invalid: data, type" + hidden,
		},
		{"update", "secrets", 400, "no 482913, please", "Bad Request" + hidden},
		{"update", "secrets", 403, `{"message":"admission webhook \"pins.shop\" denied the request: 482913 is weak"}`, `admission webhook "pins.shop" denied the request:` + hidden},
		{"delete", "secrets", 403, `{"message":"secrets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: 482913"}`, `secrets "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request:` + hidden},
		{"create", "secrets", 403, `{"message":"secrets is forbidden: User \"u\" cannot create resource"}`, `secrets is forbidden: User "u" cannot create resource`},
		{"update", "secrets", 409, `{"reason":"Conflict","message":"the object has been modified"}`, "the object has been modified"},
		{"list", "secrets", 410, `{"reason":"Expired","message":"too old resource version"}`, "too old resource version"},
		{"create", "configmaps", 422, `{"reason":"Invalid","message":"data: Invalid value: 5"}`, "data: Invalid value: 5"},
	} {
		o := &observer{budget: budget{most: maxAnswer}}
		x := &exchange{contentType: "application/json", got: o.newCapture(maxAnswer)}
		x.Request = Request{Verb: test.verb, Resource: Resource{Version: "v1", Resource: test.resource, Namespace: "b"}, Status: test.status}
		x.got.write([]byte(strings.Replace(test.answer, "{", `{"apiVersion":"v1","kind":"Status",`, 1)))
		if got := o.request(x).Message; got != test.want {
			t.Errorf("%s %s: the message is %q, not %q", test.verb, test.answer, got, test.want)
		}
	}
}
