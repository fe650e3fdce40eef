// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

func TestRolesGiveAwayWhatTheyGrant(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`
kind: Role
metadata: {name: peer, namespace: shop}
rules:
- {apiGroups: ["", apps], resources: [endpoints, pods/status], verbs: [get]}
- {apiGroups: [""], resources: [secrets], resourceNames: [a, b], verbs: [get]}
`: "get  endpoints/ shop/, get  pods/status shop/, get apps endpoints/ shop/, get apps pods/status shop/, get  secrets/ shop/a, get  secrets/ shop/b",
		`
kind: ClusterRole
metadata: {name: scraper}
rules:
- {nonResourceURLs: [/metrics, /debug/*], verbs: [get, post]}
- {apiGroups: [""], resources: [nodes], verbs: [get]}
`: "get /metrics, post /metrics, get /debug/*, post /debug/*, get  nodes/ /",
	} {
		role := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &role.Object); err != nil {
			t.Fatal(err)
		}
		var got []string
		totals := newTotals()
		rights, all := givenAway(role, role.GetNamespace(), GivenAway)
		if !all {
			t.Error("some rights are not listed")
		}
		for _, right := range rights {
			place := right.Resource
			said := fmt.Sprintf("%s %s %s/%s %s/%s", right.Verb, place.Group, place.Resource, place.Subresource, place.Namespace, place.Name)
			if right.Path != "" {
				said = right.Verb + " " + right.Path
			}
			got = append(got, said)
			totals.add(&Event{Request: &Request{Implies: []Implied{right}}})
			counted := slices.ContainsFunc(totals.clone().Uses, func(u *Use) bool {
				return u.Verb == right.Verb && u.Path == right.Path && u.Resource == place.Resource && u.Implied == GivenAway
			})
			if !counted {
				t.Errorf("%s is not counted", said)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %q", strings.Join(got, ", "), want)
		}
	}
}

// TestRolesOfManyRights writes roles with as many rights as are listed, and with one more.
func TestRolesOfManyRights(t *testing.T) {
	t.Parallel()
	for count, because := range map[int]string{
		maxGiven: "a role can grant only what its writer has, unless the writer may escalate", maxGiven + 1: WritesUnknown,
	} {
		var resources []any
		for i := range count {
			resources = append(resources, fmt.Sprint("things", i))
		}
		role := &unstructured.Unstructured{Object: map[string]any{"rules": []any{map[string]any{"apiGroups": []any{"sea"}, "resources": resources, "verbs": []any{"get"}}}}}
		rights := rightsOfWriter(Resource{Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: "shop", Name: "many"}, nil, role)
		if len(rights) != 1+maxGiven || rights[0].Verb != "escalate" || rights[0].Because != because {
			t.Errorf("a role of %d rights implies %d rights, the first of them %+v", count, len(rights), rights[0])
		}
	}
}

// TestRolesThatCollectOthers needs the right to escalate to write them, and also to make them plain roles.
func TestRolesThatCollectOthers(t *testing.T) {
	t.Parallel()
	read := func(text string) *unstructured.Unstructured {
		role := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("kind: ClusterRole\nmetadata: {name: all}\n"+text), &role.Object); err != nil {
			t.Fatal(err)
		}
		return role
	}
	plain := read("rules: [{apiGroups: [sea], resources: [ships], verbs: [get]}]")
	collects := read("rules: [{apiGroups: [sea], resources: [ships], verbs: [get]}]\naggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}")
	selectsNone := read("rules: [{apiGroups: [sea], resources: [ships], verbs: [get]}]\naggregationRule: {}")
	for name, test := range map[string]struct {
		old, now *unstructured.Unstructured
		unknown  bool
	}{
		"created":                {nil, collects, true},
		"it is plain":            {nil, plain, false},
		"without any selector":   {plain, selectsNone, false},
		"it begins to collect":   {plain, collects, true},
		"it no longer does that": {collects, plain, true},
	} {
		rights := rightsOfWriter(Resource{Group: "rbac.authorization.k8s.io", Resource: "clusterroles", Name: "all"}, test.old, test.now)
		if len(rights) != 2 || rights[0].Verb != "escalate" || (rights[0].Because == WritesUnknown) != test.unknown {
			t.Errorf("%s: implied is %+v", name, rights)
		}
	}
}

// TestBoundRoles binds roles that were seen before, and others. The operator has written some of them.
func TestBoundRoles(t *testing.T) {
	t.Parallel()
	o := &observer{memory: newMemory(1 << 20), roles: map[objectKey]bool{}}
	for i, text := range []string{
		"{kind: ClusterRole, metadata: {name: viewer}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]}",
		"{kind: ClusterRole, metadata: {name: admin}, rules: [{apiGroups: [\"*\"], resources: [pods], verbs: [get]}]}",
		"{kind: ClusterRole, metadata: {name: urls}, rules: [{nonResourceURLs: [\"/x/*\"], verbs: [get]}]}",
		"{kind: ClusterRole, metadata: {name: empty}}",
		"{kind: ClusterRole, metadata: {name: collector, labels: {written: here}}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}",
		"{kind: ClusterRole, metadata: {name: own, labels: {written: here}}, rules: [{apiGroups: [sea], resources: [\"*\"], verbs: [\"*\"]}]}",
		"{kind: ClusterRole, metadata: {name: theirs, labels: {written: here, as: alice}}, rules: [{apiGroups: [sea], resources: [\"*\"], verbs: [\"*\"]}]}",
		"{kind: Role, metadata: {name: peer, namespace: shop}, rules: [{apiGroups: [\"\"], resources: [pods], verbs: [list]}]}",
	} {
		role := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &role.Object); err != nil {
			t.Fatal(err)
		}
		role.SetResourceVersion(strconv.Itoa(i + 1))
		key := objectKey{"rbac.authorization.k8s.io", strings.ToLower(role.GetKind()) + "s", role.GetNamespace(), role.GetName()}
		if role.GetLabels() != nil {
			o.implied(&Request{Verb: "create", Status: http.StatusCreated, As: role.GetLabels()["as"], Resource: Resource{Group: key.group, Resource: key.resource, Name: key.name}}, nil, role)
		}
		o.memory.learn(key, versionOf(role, nil, encodedJSON, false, time.Time{}), 0)
	}
	for _, test := range []struct{ kind, name, namespace, want string }{
		{"ClusterRole", "viewer", "", "bind clusterroles /viewer, get pods /"},
		{"ClusterRole", "viewer", "shop", "bind clusterroles shop/viewer, get pods shop/"},
		{"Role", "peer", "shop", "bind roles shop/peer, list pods shop/"},
		{"ClusterRole", "empty", "shop", "bind clusterroles shop/empty"},
		{"Role", "peer", "other", "must bind roles other/peer"},
		{"ClusterRole", "admin", "shop", "must bind clusterroles shop/admin"},
		{"ClusterRole", "urls", "", "must bind clusterroles /urls"},
		{"ClusterRole", "view", "shop", "must bind clusterroles shop/view"},
		{"ClusterRole", "collector", "shop", "must bind clusterroles shop/collector"},
		{"ClusterRole", "own", "shop", "bind own clusterroles shop/own, * * shop/"},
		{"ClusterRole", "theirs", "shop", "must bind clusterroles shop/theirs"},
	} {
		binding := &unstructured.Unstructured{Object: map[string]any{"roleRef": map[string]any{"kind": test.kind, "name": test.name}}}
		binding.SetNamespace(test.namespace)
		var got []string
		for _, right := range o.bound(binding) {
			said := fmt.Sprintf("%s %s %s/%s", right.Verb, right.Resource.Resource, right.Resource.Namespace, right.Resource.Name)
			switch {
			case right.Because == BindsUnknown:
				said = "must " + said
			case right.Because == BindsWritten:
				said = strings.Replace(said, "bind", "bind own", 1)
			case right.Verb != "bind" && right.Because != Bound:
				t.Errorf("%s is needed because %s", said, right.Because)
			}
			got = append(got, said)
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("a binding of %s %s in %q implies %q, not %q", test.kind, test.name, test.namespace, got, test.want)
		}
	}
}

func TestChangedOwnersNeedDelete(t *testing.T) {
	t.Parallel()
	object := func(owners ...string) *corev1.ConfigMap {
		o := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b", UID: "u"}}
		for _, owner := range owners {
			o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: owner, Controller: ptr.To(true)})
		}
		return o
	}
	for name, test := range map[string]struct {
		verb        string
		status      int
		before, now *corev1.ConfigMap
		change      *Change
		want        string
	}{
		"adopted":             {"patch", http.StatusOK, object(), object("x"), nil, "delete configmaps b/a"},
		"released":            {"update", http.StatusOK, object("x"), object(), &Change{}, "delete configmaps b/a"},
		"other owner":         {"apply", http.StatusOK, object("x"), object("y"), nil, "delete configmaps b/a"},
		"same owner":          {"update", http.StatusOK, object("x"), object("x"), nil, ""},
		"created":             {"create", http.StatusCreated, nil, object("x"), nil, ""},
		"created by apply":    {"apply", http.StatusCreated, nil, object("x"), nil, "create configmaps b/"},
		"not known before":    {"update", http.StatusOK, nil, object("x"), nil, ""},
		"changed by an other": {"apply", http.StatusOK, object(), object("x"), &Change{None: true}, ""},
		"deleted with owner":  {"delete", http.StatusOK, object("x"), object(), nil, ""},
	} {
		r := &Request{
			Verb: test.verb, Status: test.status, Change: test.change, Object: &Object{Kind: "ConfigMap"},
			Resource: Resource{Version: "v1", Resource: "configmaps", Namespace: "b", Name: "a"},
		}
		var before *version
		if test.before != nil {
			before = versionOf(test.before, nil, encodedProtobuf, false, time.Time{})
		}
		var got []string
		for _, right := range (&observer{}).implied(r, before, test.now) {
			got = append(got, fmt.Sprintf("%s %s %s/%s", right.Verb, right.Resource.Resource, right.Resource.Namespace, right.Resource.Name))
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestRightsBesideTheOneToSend covers rights that the API server checks in addition, and rights that an operator reviews.
func TestRightsBesideTheOneToSend(t *testing.T) {
	t.Parallel()
	const (
		review  = `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":%s,"status":{"allowed":%v}}`
		request = `{"apiVersion":"certificates.k8s.io/v1beta1","kind":"PodCertificateRequest","metadata":{"name":"a","namespace":"a","uid":"u","resourceVersion":%q},"spec":{"signerName":"example.com/ship"},"status":{"notBefore":%q}}`
		bundle  = `{"apiVersion":"certificates.k8s.io/v1beta1","kind":"ClusterTrustBundle","metadata":{"name":"a","uid":"b","resourceVersion":"5"},"spec":{"signerName":%q}}`
		role    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a","namespace":"a"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`
		child   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"a","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"d","blockOwnerDeletion":true}]}}`
	)
	certificates := func(resource, subresource string) Resource {
		return Resource{Group: "certificates.k8s.io", Version: "v1beta1", Resource: resource, Subresource: subresource, Name: "a"}
	}
	reviews := Resource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}
	signing := certificates("podcertificaterequests", "status")
	d := newDesk(t)
	d.answer("get", certificates("podcertificaterequests", ""), fmt.Sprintf(request, "1", "2026-01-01T00:00:00Z"))
	for _, test := range []struct {
		name, verb string
		place      Resource
		dryRun     bool
		body       string
		want       string
	}{
		{"it asks, and may", "create", reviews, false, fmt.Sprintf(review, `{"resourceAttributes":{"verb":"list","group":"apps","resource":"deployments","namespace":"a"}}`, true), "list apps deployments/ a/"},
		{"it asks about a subresource", "create", reviews, false, fmt.Sprintf(review, `{"resourceAttributes":{"verb":"update","group":"","resource":"pods","subresource":"status"}}`, true), "update  pods/status /"},
		{"it asks about a URL", "create", reviews, false, fmt.Sprintf(review, `{"nonResourceAttributes":{"verb":"get","path":"/metrics"}}`, true), "get /metrics"},
		{"it asks, and may not", "create", reviews, false, fmt.Sprintf(review, `{"resourceAttributes":{"verb":"list","group":"apps","resource":"deployments"}}`, false), ""},
		{"it asks whether it may bind all roles", "create", reviews, false, fmt.Sprintf(review, `{"resourceAttributes":{"verb":"bind","group":"rbac.authorization.k8s.io","resource":"clusterroles"}}`, true), ""},
		{"it asks whether it may bind one", "create", reviews, false, fmt.Sprintf(review, `{"resourceAttributes":{"verb":"bind","group":"rbac.authorization.k8s.io","resource":"clusterroles","name":"view"}}`, true), "bind rbac.authorization.k8s.io clusterroles/ /view"},
		{"it asks about all subresources", "create", reviews, false, fmt.Sprintf(review, `{"resourceAttributes":{"verb":"update","resource":"pods","subresource":"*"}}`, true), ""},
		{"it asks whether it may do anything", "create", reviews, false, fmt.Sprintf(review, `{"resourceAttributes":{"verb":"*","group":"*","resource":"*"}}`, true), ""},
		{"a certificate of a pod, unchanged", "update", signing, false, fmt.Sprintf(request, "2", "2026-01-01T00:00:00Z"), ""},
		{"a certificate of a pod", "update", signing, false, fmt.Sprintf(request, "3", "2026-01-02T00:00:00Z"), "sign certificates.k8s.io signers/ /example.com/ship"},
		{"a bundle of a signer", "create", certificates("clustertrustbundles", ""), false, fmt.Sprintf(bundle, "example.com/ship"), "attest certificates.k8s.io signers/ /example.com/ship"},
		{"a bundle without a signer", "create", certificates("clustertrustbundles", ""), false, fmt.Sprintf(bundle, ""), ""},
		{"a role, on trial", "create", Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles", Namespace: "a", Name: "a"}, true, role, "escalate rbac.authorization.k8s.io roles/ a/, get  pods/ a/"},
		{"a child, on trial", "apply", Resource{Version: "v1", Resource: "configmaps", Namespace: "a", Name: "a"}, true, child, "update apps deployments/finalizers a/web"},
	} {
		d.dryRun = test.dryRun
		var got []string
		for _, one := range d.answer(test.verb, test.place, test.body).Implies {
			place := one.Resource
			said := fmt.Sprintf("%s %s %s/%s %s/%s", one.Verb, place.Group, place.Resource, place.Subresource, place.Namespace, place.Name)
			if one.Path != "" {
				said = one.Verb + " " + one.Path
			}
			got = append(got, said)
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	if len(d.roles) > 0 {
		t.Error("a role that was only tried counts as written")
	}
}
