// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/opdock/opdock/internal/lens"
)

// noon is when the last request was sent.
var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

const operator = "system:serviceaccount:ship-system:ship"

// asked makes a use from words: verb, resource.group/subresource, and then where: a namespace with a slash and perhaps a name,
// a name after a sole slash for what is in no namespace, "all" for all namespaces.
func asked(times uint64, verb, resource string, where ...string) *lens.Use {
	u := &lens.Use{Verb: verb, Count: times, First: noon, Last: noon, Example: 7, Namespaces: map[string]uint64{}, Names: map[string]uint64{}}
	resource, u.Subresource, _ = strings.Cut(resource, "/")
	u.Resource, u.Group, _ = strings.Cut(resource, ".")
	for _, at := range where {
		namespace, name, _ := strings.Cut(at, "/")
		switch {
		case at == "all" || namespace == "":
			u.ClusterWide += times
		default:
			u.Namespaces[namespace] += times
		}
		if name == "" {
			u.Unnamed += times
		} else {
			u.Names[name] += times
		}
	}
	return u
}

func refused(u *lens.Use) *lens.Use {
	u.Forbidden = u.Count
	return u
}

func implied(u *lens.Use, why string) *lens.Use {
	u.Implied = why
	return u
}

// recorded makes a recording of uses, in which a Frigate called victory was reconciled.
func recorded(uses ...*lens.Use) *Recording {
	r := &Recording{Name: "one.jsonl", Header: lens.Header{Began: noon, Identity: operator}, facts: newFacts()}
	r.Totals = lens.Totals{Since: noon, Last: noon, Uses: uses}
	r.facts.see(&lens.Event{Reconcile: &lens.Reconcile{ID: 3, Controller: "frigate", Kind: "Frigate", Namespace: "default", Name: "victory"}})
	return r
}

// lines are needs, one on each line.
func lines(needs []*Need) string {
	var text strings.Builder
	for _, n := range needs {
		fmt.Fprintf(&text, "%s %s", n.Verb, n.Object())
		if len(n.Namespaces) > 0 {
			fmt.Fprintf(&text, " in %s", strings.Join(n.Namespaces, ","))
		}
		if len(n.Names) > 0 {
			fmt.Fprintf(&text, " only %s", strings.Join(n.Names, ","))
		}
		for _, word := range []struct {
			set  bool
			text string
		}{{n.Implied, "implied"}, {n.Refused, "refused"}, {n.Alternative, "alternative"}, {n.Part != "", string(n.Part)}} {
			if word.set {
				fmt.Fprintf(&text, " (%s)", word.text)
			}
		}
		text.WriteString("\n")
	}
	return text.String()
}

func TestNeeds(t *testing.T) {
	for name, test := range map[string]struct {
		uses []*lens.Use
		want string
	}{
		"apply is patch": {
			[]*lens.Use{asked(2, "apply", "deployments.apps", "default/victory"), asked(1, "patch", "deployments.apps", "default/victory"), asked(1, "watch", "frigates.sea", "all")},
			"patch deployments.apps\nlist frigates.sea (implied)\nwatch frigates.sea\n",
		},
		"an apply that creates needs create": {
			[]*lens.Use{asked(1, "apply", "services", "default/victory"), implied(asked(1, "create", "services", "default/"), "this apply created the object"), asked(1, "watch", "services", "all")},
			"list services (implied)\nwatch services\ncreate services (implied)\npatch services\n",
		},
		"discovery and questions about oneself are free": {
			[]*lens.Use{
				{Verb: "get", Path: "/api", Count: 1}, {Verb: "get", Path: "/apis/apps/v1", Count: 1}, {Verb: "get", Path: "/openapi/v3/apis", Count: 1},
				{Verb: "get", Path: "/healthz", Count: 1}, {Verb: "get", Path: "/readyz/etcd", Count: 1, ClusterWide: 1, Unnamed: 1},
				{Verb: "get", Path: "/metrics", Count: 1, ClusterWide: 1, Unnamed: 1}, asked(1, "create", "selfsubjectaccessreviews.authorization.k8s.io", "all"),
			},
			"get /metrics\nget /readyz/etcd\n",
		},
		"one who lists directly does not watch": {
			[]*lens.Use{asked(1, "list", "nodes", "all")}, "list nodes\n",
		},
		"leader election": {
			[]*lens.Use{asked(9, "update", "leases.coordination.k8s.io", "ship-system/ship-lock"), asked(1, "watch", "frigates.sea", "all")},
			"get leases.coordination.k8s.io in ship-system only ship-lock (implied) (leader election)\n" +
				"create leases.coordination.k8s.io in ship-system (implied) (leader election)\n" +
				"update leases.coordination.k8s.io in ship-system only ship-lock (leader election)\n" +
				"list frigates.sea (implied)\nwatch frigates.sea\n",
		},
		"events are where the objects are": {
			[]*lens.Use{asked(9, "create", "events", "ship-system/"), asked(1, "watch", "frigates.sea", "all")},
			"create events (event recorder)\npatch events (implied) (event recorder)\nlist frigates.sea (implied)\nwatch frigates.sea\n",
		},
		"a namespaced install": {
			[]*lens.Use{
				asked(1, "watch", "frigates.sea", "team-a/"), asked(1, "watch", "frigates.sea", "team-b/"), asked(1, "apply", "services", "team-a/victory"),
				asked(1, "get", "nodes", "/node-1"), asked(1, "get", "secrets", "ship-system/credentials"),
			},
			"get nodes\nget secrets in ship-system only credentials\npatch services in team-a,team-b\n" +
				"list frigates.sea in team-a,team-b (implied)\nwatch frigates.sea in team-a,team-b\n",
		},
		"namespaces that the operator creates are not fixed": {
			[]*lens.Use{asked(1, "apply", "namespaces", "/acme"), asked(1, "apply", "configmaps", "acme/settings"), asked(1, "list", "pods", "acme/"), asked(1, "get", "secrets", "kube-system/ca")},
			"patch configmaps\npatch namespaces\nlist pods\nget secrets in kube-system\n",
		},
		"namespaces that are named after what is reconciled are not fixed": {
			[]*lens.Use{asked(1, "apply", "configmaps", "ns-victory/settings"), asked(1, "get", "secrets", "kube-system/ca")},
			"patch configmaps\nget secrets in kube-system\n",
		},
		"a namespace that is watched is fixed": {
			[]*lens.Use{asked(1, "watch", "frigates.sea", "victory/"), asked(1, "apply", "configmaps", "victory/settings")},
			"patch configmaps in victory\nlist frigates.sea in victory (implied)\nwatch frigates.sea in victory\n",
		},
		"a namespace that it may not create is fixed": {
			[]*lens.Use{refused(asked(1, "create", "namespaces", "/acme")), asked(1, "apply", "configmaps", "acme/settings")},
			"patch configmaps in acme\ncreate namespaces (refused)\n",
		},
		"names that come from what is reconciled are not fixed": {
			[]*lens.Use{asked(1, "get", "secrets", "ship-system/victory-key"), asked(1, "get", "configmaps", "ship-system/victor"), asked(1, "watch", "frigates.sea", "all")},
			"get configmaps in ship-system\nget secrets in ship-system\nlist frigates.sea (implied)\nwatch frigates.sea\n",
		},
		"names of pods are others in another cluster": {
			[]*lens.Use{
				asked(1, "get", "pods", "ship-system/ship-controller-manager"), asked(1, "patch", "pods/status", "ship-system/ship-controller-manager"),
				asked(1, "get", "secrets", "ship-system/credentials"), asked(1, "watch", "frigates.sea", "all"),
			},
			"get pods in ship-system\npatch pods/status in ship-system\nget secrets in ship-system only credentials\nlist frigates.sea (implied)\nwatch frigates.sea\n",
		},
		"names elsewhere may come from a custom resource": {
			[]*lens.Use{asked(1, "get", "secrets", "default/password"), asked(1, "get", "storageclasses.storage.k8s.io", "/fast"), asked(1, "watch", "frigates.sea", "all")},
			"get secrets\nlist frigates.sea (implied)\nwatch frigates.sea\nget storageclasses.storage.k8s.io\n",
		},
		"names of what comes with the operator are fixed": {
			[]*lens.Use{
				asked(1, "update", "validatingwebhookconfigurations.admissionregistration.k8s.io", "/hooks"),
				asked(1, "watch", "customresourcedefinitions.apiextensions.k8s.io", "/frigates.sea"), asked(1, "create", "customresourcedefinitions.apiextensions.k8s.io", "/"),
			},
			"update validatingwebhookconfigurations.admissionregistration.k8s.io only hooks\n" +
				"list customresourcedefinitions.apiextensions.k8s.io only frigates.sea (implied)\n" +
				"watch customresourcedefinitions.apiextensions.k8s.io only frigates.sea\n" +
				"create customresourcedefinitions.apiextensions.k8s.io\n",
		},
		"what was refused is not needed": {
			[]*lens.Use{refused(asked(3, "watch", "services", "all")), asked(1, "watch", "frigates.sea", "all")},
			"list services (implied) (refused)\nwatch services (refused)\nlist frigates.sea (implied)\nwatch frigates.sea\n",
		},
		"owners, roles and bindings": {
			[]*lens.Use{
				implied(asked(1, "update", "frigates.sea/finalizers", "default/victory"), "owner"),
				implied(asked(1, "escalate", "roles.rbac.authorization.k8s.io", "default/"), "role"),
				implied(asked(1, "bind", "clusterroles.rbac.authorization.k8s.io", "/view"), "binding"),
			},
			"bind clusterroles.rbac.authorization.k8s.io only view (implied) (alternative)\nescalate roles.rbac.authorization.k8s.io in default (implied) (alternative)\n" +
				"update frigates.sea/finalizers in default (implied)\n",
		},
		"an owner that is in no namespace": {
			[]*lens.Use{asked(1, "update", "fleets.sea", "/royal"), implied(asked(1, "update", "fleets.sea/finalizers", "default/royal"), "owner")},
			"update fleets.sea\nupdate fleets.sea/finalizers (implied)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := Compare(Merge([]*Recording{recorded(test.uses...)}), Granted{}, Options{})
			if got := lines(report.Needs); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// TestNamespacesWithGeneratedNames have no names in totals.
func TestNamespacesWithGeneratedNames(t *testing.T) {
	r := recorded(asked(1, "create", "namespaces", "/"), asked(1, "apply", "configmaps", "acme-x7f2k/settings"))
	r.See(&lens.Event{Request: &lens.Request{
		Verb: "create", Resource: lens.Resource{Version: "v1", Resource: "namespaces", Name: "acme-x7f2k"}, Object: &lens.Object{Kind: "Namespace", Name: "acme-x7f2k", Generated: true},
	}})
	if got := lines(Compare(Merge([]*Recording{r}), Granted{}, Options{}).Needs); got != "patch configmaps\ncreate namespaces\n" {
		t.Errorf("got\n%s", got)
	}
}

func TestCachedReadsExplainListAndWatch(t *testing.T) {
	r := recorded(asked(1, "watch", "deployments.apps", "all"))
	r.facts.see(&lens.Event{Delivery: &lens.Delivery{
		Resource: lens.Resource{Group: "apps", Resource: "deployments"}, Object: &lens.Object{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "victory"},
	}})
	for range 12 {
		r.facts.see(&lens.Event{Read: &lens.Read{Group: "apps", Kind: "Deployment", Namespace: "default", Name: "victory"}})
	}
	report := Compare(Merge([]*Recording{r}), Granted{}, Options{})
	watch := report.Needs[slices.IndexFunc(report.Needs, func(n *Need) bool { return n.Verb == "watch" })]
	if want := "an informer: 12 reads were answered from its cache, which needs list and watch, not get"; !slices.Contains(watch.Why, want) {
		t.Errorf("got %q, want %q", watch.Why, want)
	}
}

// TestOwnersAreSubjects is for an operator that reconciles a kind of Kubernetes in its own namespace: what it writes there is
// written elsewhere the next time.
func TestOwnersAreSubjects(t *testing.T) {
	r := recorded(asked(1, "watch", "configmaps", "all"), asked(1, "get", "secrets", "ship-system/key"))
	const before = "list configmaps (implied)\nwatch configmaps\nget secrets in ship-system only key\n"
	if got := lines(Compare(Merge([]*Recording{r}), Granted{}, Options{}).Needs); got != before {
		t.Errorf("got\n%swant\n%s", got, before)
	}
	r.facts.see(&lens.Event{Request: &lens.Request{
		Verb: "create", Status: 201, Resource: lens.Resource{Resource: "secrets", Namespace: "ship-system", Name: "key"},
		Object: &lens.Object{Kind: "Secret", Namespace: "ship-system", Name: "key", Owners: []lens.Owner{{Kind: "ConfigMap", Name: "one"}}},
	}})
	const after = "list configmaps (implied)\nwatch configmaps\nget secrets\n"
	if got := lines(Compare(Merge([]*Recording{r}), Granted{}, Options{}).Needs); got != after {
		t.Errorf("got\n%swant\n%s", got, after)
	}
}

// TestValuesOfCustomResources are no fixed names.
func TestValuesOfCustomResources(t *testing.T) {
	r := recorded(asked(1, "get", "secrets", "ship-system/ca-pair"), asked(1, "get", "configmaps", "ship-system/settings"), asked(1, "apply", "services", "team-a/x"), asked(1, "apply", "roles.rbac.authorization.k8s.io", "team-b/x"))
	const before = "get configmaps in ship-system only settings\nget secrets in ship-system only ca-pair\npatch services in team-a\npatch roles.rbac.authorization.k8s.io in team-b\n"
	if got := lines(Compare(Merge([]*Recording{r}), Granted{}, Options{}).Needs); got != before {
		t.Errorf("got\n%swant\n%s", got, before)
	}
	r.Totals.Mentioned = []string{"ca-pair", "team-a"}
	report := Compare(Merge([]*Recording{r}), Granted{}, Options{})
	const after = "get configmaps in ship-system only settings\nget secrets in ship-system\npatch services\npatch roles.rbac.authorization.k8s.io in team-b\n"
	if got := lines(report.Needs); got != after {
		t.Errorf("got\n%swant\n%s", got, after)
	}
	for i, want := range map[int]string{1: "not limited to the name ca-pair: ", 2: "not limited to the namespace team-a: "} {
		if got := sentence(report.Needs[i].Why); !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestShortNamesOfCustomResources are in many other names by chance.
func TestShortNamesOfCustomResources(t *testing.T) {
	f := newFacts()
	f.subjects["op"], f.subjects["a"], f.subjects["x.y"] = true, true, true
	for name, want := range map[string]bool{
		"op": true, "op-key": true, "my.op": true, "a": true, "tls-a-key": true, "x-y": true, "operator-cert": false, "webhook-server-cert": false, "shop": false, "xy": false,
	} {
		if got := f.isNamedAfter(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestResourcesInNoNamespace are those of other projects, which a namespaced install lists or watches without a namespace.
func TestResourcesInNoNamespace(t *testing.T) {
	const namespaced = "list frigates.sea in team-a (implied)\nwatch frigates.sea in team-a\n"
	for name, test := range map[string]struct {
		resource, namespace string
		want                string
	}{
		"of another project":            {"harbours.land", "", "list harbours.land (implied)\nwatch harbours.land\n" + namespaced},
		"of Kubernetes":                 {"resourceslices.resource.k8s.io", "", "list resourceslices.resource.k8s.io (implied)\nwatch resourceslices.resource.k8s.io\n"},
		"in a namespace of all of them": {"harbours.land", "port", "list harbours.land (implied)\nwatch harbours.land\nlist frigates.sea (implied)\nwatch frigates.sea\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded(asked(1, "watch", "frigates.sea", "team-a/"), asked(1, "watch", test.resource, "all"))
			resource, group, _ := strings.Cut(test.resource, ".")
			if group == "land" {
				r.See(&lens.Event{Delivery: &lens.Delivery{
					Resource: lens.Resource{Group: group, Resource: resource}, Type: "ADDED", Object: &lens.Object{Group: group, Kind: "Harbour", Namespace: test.namespace, Name: "one"},
				}})
			}
			got := lines(Compare(Merge([]*Recording{r}), Granted{}, Options{}).Needs)
			if !strings.Contains(got, test.want) || test.namespace == "" && !strings.Contains(got, namespaced) {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

func TestMergeAddsUp(t *testing.T) {
	later := asked(2, "patch", "services", "team-b/x")
	later.Last, later.Example, later.Reconcile = noon.Add(time.Hour), 99, 3
	second := recorded(later)
	second.Name, second.Header.Began, second.Header.Identity = "two.jsonl", noon.Add(time.Minute), "administrator"
	o := Merge([]*Recording{second, recorded(asked(1, "apply", "services", "team-a/y"), refused(asked(1, "patch", "services", "team-c/z")))})
	if len(o.uses) != 1 || o.Identity != "administrator" {
		t.Fatalf("got %d uses as %q", len(o.uses), o.Identity)
	}
	e := o.uses[0].Evidence
	if e.Requests != 4 || e.Refused != 1 || e.Recording != "two.jsonl" || e.Request != 99 || !e.First.Equal(noon) || !e.Last.Equal(noon.Add(time.Hour)) {
		t.Errorf("got %+v", e)
	}
	if e.Reconcile == nil || e.Reconcile.String() != "reconcile #3 of frigate default/victory" {
		t.Errorf("got reconcile %v", e.Reconcile)
	}
	if len(e.Namespaces) != 3 || len(e.Names) != 3 {
		t.Errorf("got namespaces %v and names %v", e.Namespaces, e.Names)
	}
}

// rule makes a rule from words: groups, resources and verbs, separated by commas.
func rule(from, namespace, groups, resources, verbs string, names ...string) Rule {
	return Rule{
		PolicyRule: rbacv1.PolicyRule{
			APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","), ResourceNames: names,
		},
		Namespace: namespace, From: from,
	}
}

func TestIncludes(t *testing.T) {
	for _, test := range []struct {
		granted, asked Right
		want           bool
	}{
		{Right{"get", "", "pods", ""}, Right{"get", "", "pods", ""}, true},
		{Right{"get", "", "pods", ""}, Right{"get", "", "pods/status", ""}, false},
		{Right{"get", "", "pods/status", ""}, Right{"get", "", "pods", ""}, false},
		{Right{"*", "*", "*", ""}, Right{"bind", "rbac.authorization.k8s.io", "roles", ""}, true},
		{Right{"*", "*", "*", ""}, Right{"get", "", "pods/log", ""}, true},
		{Right{"get", "apps", "*", ""}, Right{"get", "", "pods", ""}, false},
		{Right{"get", "", "*/status", ""}, Right{"get", "", "pods/status", ""}, true},
		{Right{"get", "", "*/status", ""}, Right{"get", "", "pods", ""}, false},
		{Right{"*", "*", "*", ""}, Right{"get", "", "", "/metrics"}, false},
		{Right{"get", "", "", "/metrics"}, Right{"get", "", "", "/metrics"}, true},
		{Right{"get", "", "", "/metrics"}, Right{"get", "", "", "/metrics/x"}, false},
		{Right{"get", "", "", "/metrics/*"}, Right{"get", "", "", "/metrics/x"}, true},
		{Right{"*", "", "", "*"}, Right{"post", "", "", "/x"}, true},
		{Right{"get", "", "", "*"}, Right{"get", "", "pods", ""}, false},
	} {
		if got := test.granted.includes(test.asked); got != test.want {
			t.Errorf("%+v includes %+v: got %t", test.granted, test.asked, got)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, test := range []struct {
		rule  Rule
		right Right
		at    place
		want  bool
	}{
		{rule("", "", "", "pods", "get"), Right{"get", "", "pods", ""}, place{"a", "x"}, true},
		{rule("", "a", "", "pods", "get"), Right{"get", "", "pods", ""}, place{"a", "x"}, true},
		{rule("", "a", "", "pods", "get"), Right{"get", "", "pods", ""}, place{"b", "x"}, false},
		{rule("", "a", "", "pods", "list"), Right{"list", "", "pods", ""}, place{"", ""}, false},
		{rule("", "", "", "pods", "get", "x", "y"), Right{"get", "", "pods", ""}, place{"a", "x"}, true},
		{rule("", "", "", "pods", "get", "x", "y"), Right{"get", "", "pods", ""}, place{"a", "z"}, false},
		{rule("", "", "", "pods", "create", "x"), Right{"create", "", "pods", ""}, place{"a", ""}, false},
	} {
		if got := test.rule.covers(test.right, test.at); got != test.want {
			t.Errorf("%+v covers %+v at %+v: got %t", test.rule, test.right, test.at, got)
		}
	}
}
