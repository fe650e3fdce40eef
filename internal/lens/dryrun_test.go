// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"net/http"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// TestDryRunsOfDeletions has requests with the option in the body, where client-go puts it. Faults must see it before they decide.
func TestDryRunsOfDeletions(t *testing.T) {
	t.Parallel()
	dry, wet := &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, &metav1.DeleteOptions{}
	for _, options := range []*metav1.DeleteOptions{dry, wet} {
		options.APIVersion, options.Kind = "v1", "DeleteOptions"
	}
	evict := func(options *metav1.DeleteOptions) runtime.Object {
		return &policyv1.Eviction{TypeMeta: metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"}, DeleteOptions: options}
	}
	const pods = "/api/v1/namespaces/a/pods"
	seen := make(chan bool, 1)
	s := newStage(t, Options{Faults: &script{request: func(c *Call) Verdict {
		seen <- c.Request.DryRun
		return Verdict{}
	}}}, func(http.ResponseWriter, *http.Request) {})
	for mediaType, encoder := range map[string]runtime.Encoder{
		runtime.ContentTypeJSON:     jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, nil, nil, jsonserializer.SerializerOptions{}),
		runtime.ContentTypeProtobuf: protobuf.NewSerializer(nil, nil),
	} {
		for _, one := range []struct {
			method, path string
			body         runtime.Object
			want         bool
		}{
			{http.MethodDelete, pods + "/web", dry, true},
			{http.MethodDelete, pods, dry, true},
			{http.MethodDelete, pods + "/web", wet, false},
			{http.MethodDelete, pods + "/web?dryRun=All", wet, false}, // the API server reads only the body
			{http.MethodDelete, pods + "/web?dryRun=All", nil, true},
			{http.MethodPost, pods + "/web/eviction", evict(dry), true},
			{http.MethodPost, pods + "/web/eviction", evict(nil), false},
			{http.MethodPost, pods + "/web/eviction?dryRun=All", evict(nil), true},
		} {
			var body bytes.Buffer
			if one.body != nil {
				if err := encoder.Encode(one.body, &body); err != nil {
					t.Fatal(err)
				}
			}
			s.request(one.method, one.path, body.String(), "Content-Type", mediaType)
			if seen := <-seen; seen != one.want {
				t.Errorf("%s %s with %+v in %s: a dry run is %t", one.method, one.path, one.body, mediaType, seen)
			}
		}
	}
	s.request(http.MethodDelete, pods+"/last", `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, "Content-Type", "application/json")
	for _, e := range s.events() {
		if r := e.Request; r != nil && r.Resource.Name == "last" && (!r.DryRun || r.IsWrite()) {
			t.Errorf("recorded is %+v", r)
		}
	}
}
