// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// right is what a rule of a role grants, one by one.
type right struct{ verb, group, resource string }

func (r right) String() string {
	return strings.TrimSuffix(fmt.Sprintf("%s %s.%s", r.verb, r.resource, r.group), ".")
}

func compareRights(a, b right) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.verb, b.verb))
}

// requests are those of one manager: which rights they made use of, and which of them were refused.
type requests struct {
	mutex   sync.Mutex
	used    map[right]bool
	refused []string
}

// newRequests returns a configuration whose requests are recorded.
func newRequests(config *rest.Config) (*requests, *rest.Config) {
	r := &requests{used: map[right]bool{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &recorder{requests: r, next: next} })
	return r, config
}

type recorder struct {
	requests *requests
	next     http.RoundTripper
}

// meaning finds out what a request asks for in the way the API server does.
var meaning = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(sent *http.Request) (*http.Response, error) {
	info, err := meaning.NewRequestInfo(sent)
	if err != nil {
		return nil, err
	}
	response, err := r.next.RoundTrip(sent)
	if err == nil && info.IsResourceRequest {
		r.requests.note(info, sent, response)
	}
	return response, err
}

func (r *requests) note(info *request.RequestInfo, sent *http.Request, response *http.Response) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	asked := right{verb: info.Verb, group: info.APIGroup, resource: resource}
	r.used[asked] = true
	if response.StatusCode == http.StatusCreated && sent.Header.Get("Content-Type") == string(types.ApplyPatchType) {
		// The server asks for this right, too, when applying creates an object.
		r.used[right{verb: "create", group: asked.group, resource: resource}] = true
	}
	if response.StatusCode == http.StatusForbidden && lacksRight(response) {
		r.refused = append(r.refused, fmt.Sprintf("%v: %s %s", asked, sent.Method, sent.URL.Path))
	}
}

// lacksRight tells a request that its sender has no right to from one that no client would be allowed, such as to
// create something in a namespace that is being deleted.
func lacksRight(response *http.Response) bool {
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	return err != nil || bytes.Contains(body, []byte("is forbidden: User "))
}

func (r *requests) has(wanted right) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.used[wanted]
}

func (r *requests) refusals() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.refused)
}

// unused returns the granted rights that were not used.
func (r *requests) unused(granted map[right]bool) []right {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	left := maps.Clone(granted)
	for used := range r.used {
		delete(left, used)
	}
	return slices.SortedFunc(maps.Keys(left), compareRights)
}

// grants are the rights that the roles in the manifests give to the manager.
func grants(t testing.TB, manifests []*unstructured.Unstructured) map[right]bool {
	t.Helper()
	granted := map[right]bool{}
	for _, binding := range manifests {
		if binding.GetKind() != "ClusterRoleBinding" && binding.GetKind() != "RoleBinding" {
			continue
		}
		kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
		name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		for _, role := range manifests {
			if role.GetKind() != kind || role.GetName() != name {
				continue
			}
			// Cluster roles and roles have the same rules.
			var typed rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(role.Object, &typed); err != nil {
				t.Fatal(err)
			}
			for _, rule := range typed.Rules {
				expand(rule, granted)
			}
		}
	}
	return granted
}

func expand(rule rbacv1.PolicyRule, into map[right]bool) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				into[right{verb: verb, group: group, resource: resource}] = true
			}
		}
	}
}
