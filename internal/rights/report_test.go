// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

func found(findings []Finding) string {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%s: %s %s", f.Type, strings.Join(f.Verbs, ","), Right{Group: f.Group, Resource: f.Resource, URL: f.URL}.Object())
		if len(f.Names) > 0 {
			fmt.Fprintf(&text, " %s", strings.Join(f.Names, ","))
		}
		if f.Message != "" {
			fmt.Fprintf(&text, ": %s", f.Message)
		}
		text.WriteString("\n")
	}
	return text.String()
}

// watches is what an operator for Frigates in all namespaces does at least.
var watches = asked(1, "watch", "frigates.sea", "all")

// grantedWatches is a rule for that.
var grantedWatches = rule("role", "", "sea", "frigates", "list,watch")

func TestFindings(t *testing.T) {
	const (
		informer = "an informer lists before it watches; only newer API servers stream the list as part of the watch"
	)
	for name, test := range map[string]struct {
		uses  []*lens.Use
		rules []Rule
		want  string
	}{
		"exactly what is needed": {[]*lens.Use{watches}, []Rule{grantedWatches}, ""},
		"missing, and refused": {
			[]*lens.Use{watches, asked(1, "patch", "services", "default/victory"), refused(asked(3, "delete", "services", "default/victory"))},
			[]Rule{grantedWatches},
			"missing: patch services\nrefused: delete services\n",
		},
		"granted now": {
			[]*lens.Use{watches, refused(asked(3, "delete", "services", "default/victory"))},
			[]Rule{grantedWatches, rule("role", "", "", "services", "delete")}, "",
		},
		"only a watch is granted": {
			[]*lens.Use{watches}, []Rule{rule("role", "", "sea", "frigates", "watch")}, "missing: list frigates.sea: " + informer + "\n",
		},
		"granted in another namespace": {
			[]*lens.Use{watches, asked(1, "patch", "services", "team-a/x", "team-b/x")}, []Rule{grantedWatches, rule("role", "team-a", "", "services", "patch")},
			"missing: patch services\n",
		},
		"granted for another name": {
			[]*lens.Use{watches, asked(1, "get", "configmaps", "default/x", "default/y")}, []Rule{grantedWatches, rule("role", "", "", "configmaps", "get", "x", "z")},
			"missing: get configmaps\nunused: get configmaps z\n",
		},
		"a get that a cache answers": {
			[]*lens.Use{watches}, []Rule{rule("role", "", "sea", "frigates", "get,list,watch,delete")},
			"unused: get,delete frigates.sea: reads are answered from a cache, which needs list and watch, not get\n",
		},
		"wildcards": {
			[]*lens.Use{watches, asked(1, "patch", "frigates.sea/status", "default/victory")},
			[]Rule{rule("role", "", "sea", "*", "*"), rule("role", "", "apps", "*", "get")},
			"unused: get *.apps\nbroader: * *.sea: used only for list, watch on frigates.sea; patch on frigates.sea/status\n",
		},
		"all verbs": {
			[]*lens.Use{watches}, []Rule{rule("role", "", "sea", "frigates", "*")}, "broader: * frigates.sea: used only for list, watch on frigates.sea\n",
		},
		"the whole cluster, and all names": {
			[]*lens.Use{watches, asked(1, "get", "secrets", "ship-system/credentials")}, []Rule{grantedWatches, rule("role", "", "", "secrets", "get")},
			"broader: get secrets: the whole cluster, used only in namespace ship-system\nbroader: get secrets: all names, used only for credentials\n",
		},
		"one namespace of an operator that watches all is no reason": {
			[]*lens.Use{watches, asked(1, "patch", "services", "default/victory")}, []Rule{grantedWatches, rule("role", "", "", "services", "patch")}, "",
		},
		"parts of a manager": {
			[]*lens.Use{watches},
			[]Rule{
				grantedWatches, rule("leader", "ship-system", "coordination.k8s.io", "leases", "get,list,watch,create,update,patch,delete"),
				rule("leader", "ship-system", "", "events", "create,patch"), rule("metrics", "", "authentication.k8s.io", "tokenreviews", "create"),
			},
			"unused: list,watch,patch,delete leases.coordination.k8s.io\n" +
				"kept: create,patch events: the event recorder creates events, and patches those that repeat\n" +
				"kept: create tokenreviews.authentication.k8s.io: the metrics endpoint authenticates its clients with the API server\n" +
				"kept: get,create,update leases.coordination.k8s.io: leader election keeps a lease\n",
		},
		"policies for pods": {
			[]*lens.Use{watches},
			[]Rule{
				grantedWatches, rule("role", "", "security.openshift.io", "securitycontextconstraints", "get,use", "anyuid"), rule("role", "", "policy", "podsecuritypolicies", "use"),
				rule("role", "", "sea", "boats", "use"), rule("role", "", "security.openshift.io", "*", "*"),
			},
			"unused: use boats.sea\nunused: * *.security.openshift.io\nunused: get securitycontextconstraints.security.openshift.io\n" +
				"kept: use podsecuritypolicies.policy: " + whyUse + "\nkept: use securitycontextconstraints.security.openshift.io: " + whyUse + "\n",
		},
		"roles without escalate": {
			[]*lens.Use{watches, implied(asked(1, "escalate", "roles.rbac.authorization.k8s.io", "default/"), "role")}, []Rule{grantedWatches}, "",
		},
		"roles with escalate": {
			[]*lens.Use{watches, implied(asked(1, "escalate", "roles.rbac.authorization.k8s.io", "default/"), "role")},
			[]Rule{grantedWatches, rule("role", "", "rbac.authorization.k8s.io", "roles", "bind,escalate")}, "unused: bind roles.rbac.authorization.k8s.io\n",
		},
		"what roles grant has to be granted": {
			[]*lens.Use{
				watches, implied(asked(1, "escalate", "roles.rbac.authorization.k8s.io", "default/"), "role"),
				implied(asked(1, "get", "endpoints", "default/"), lens.GivenAway), implied(asked(1, "watch", "secrets", "default/"), lens.GivenAway),
			},
			[]Rule{grantedWatches, rule("role", "", "", "endpoints", "get,list")},
			"missing: watch secrets: " + lens.GivenAway + "\nunused: list endpoints\n",
		},
		"what roles grant is free for one who may escalate": {
			[]*lens.Use{
				watches, implied(asked(1, "escalate", "roles.rbac.authorization.k8s.io", "default/"), "role"), implied(asked(1, "get", "endpoints", "default/"), lens.GivenAway),
			},
			[]Rule{grantedWatches, rule("role", "", "rbac.authorization.k8s.io", "roles", "escalate"), rule("role", "", "", "endpoints", "get")},
			"unused: get endpoints\n",
		},
		"finalizers": {
			[]*lens.Use{watches, implied(asked(4, "update", "frigates.sea/finalizers", "default/victory"), "Service victory refers to its owner")}, []Rule{grantedWatches},
			"missing: update frigates.sea/finalizers: Service victory refers to its owner\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := Compare(Merge([]*Recording{recorded(test.uses...)}), Granted{Source: "roles", Rules: test.rules}, Options{})
			if got := found(report.Findings); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}

}

func TestARightOfTwoRolesIsCountedOnce(t *testing.T) {
	for name, second := range map[string]Rule{
		"the same rule in two roles":   rule("chart/b.yaml", "ship-system", "", "events", "create,patch"),
		"one in a namespace, one wide": rule("chart/b.yaml", "", "", "events", "create,patch"),
	} {
		t.Run(name, func(t *testing.T) {
			rules := []Rule{grantedWatches, rule("chart/a.yaml", "ship-system", "", "events", "create,patch"), second}
			report := Compare(Merge([]*Recording{recorded(watches)}), Granted{Source: "chart", Rules: rules}, Options{})
			if got, want := report.Rights(), 4; got != want {
				t.Errorf("%d rights of %v, want %d: list and watch frigates, create and patch events", got, report.Grants, want)
			}
		})
	}
}

// proposed is the proposal as markers.
func proposed(report *Report) string { return strings.Join(MarkerLines(report.Proposal), "\n") + "\n" }

func TestProposal(t *testing.T) {
	uses := []*lens.Use{
		watches, asked(1, "patch", "frigates.sea/status", "default/victory"), asked(1, "watch", "deployments.apps", "all"), asked(1, "watch", "statefulsets.apps", "all"),
		asked(1, "patch", "deployments.apps", "default/victory"), refused(asked(1, "delete", "services", "default/victory")),
		asked(1, "get", "secrets", "ship-system/credentials"), {Verb: "get", Path: "/metrics", Count: 1, ClusterWide: 1, Unnamed: 1},
		implied(asked(1, "escalate", "roles.rbac.authorization.k8s.io", "default/"), "role"),
	}
	granted := Granted{Source: "roles", Rules: []Rule{
		rule("role", "", "apps", "*", "*"), rule("leader", "ship-system", "coordination.k8s.io", "leases", "get,create,update,delete"),
		rule("role", "", "", "events", "create,patch"), rule("leader", "ship-system", "", "events", "create,patch"),
	}}
	const want = `+kubebuilder:rbac:groups="",resources=events,verbs=create;patch
+kubebuilder:rbac:groups=apps,resources=deployments,verbs=list;watch;patch
+kubebuilder:rbac:groups=apps,resources=statefulsets,verbs=list;watch
+kubebuilder:rbac:groups=sea,resources=frigates,verbs=list;watch
+kubebuilder:rbac:groups=sea,resources=frigates/status,verbs=patch
+kubebuilder:rbac:urls=/metrics,verbs=get
+kubebuilder:rbac:groups="",resources=secrets,resourceNames=credentials,verbs=get,namespace=ship-system
+kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update,namespace=ship-system
`
	observed := Merge([]*Recording{recorded(uses...)})
	report := Compare(observed, granted, Options{})
	if got := proposed(report); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	report = Compare(observed, granted, Options{IncludeRefused: true})
	if got := proposed(report); !strings.Contains(got, "+kubebuilder:rbac:groups=\"\",resources=services,verbs=delete\n") {
		t.Errorf("what was refused is not proposed:\n%s", got)
	}
	if want := "the operator writes roles or bindings without escalate or bind: it needs every right that it grants, even if that right looks unused here"; !slices.Contains(report.Notes, want) {
		t.Errorf("got notes %q, want %q among them", report.Notes, want)
	}
}

// TestTheProposalIsEnough compares what was asked for with the proposal as if that was granted.
func TestTheProposalIsEnough(t *testing.T) {
	observed := Merge([]*Recording{recorded(
		asked(1, "watch", "frigates.sea", "team-a/"), asked(2, "apply", "services", "team-a/victory"), asked(1, "get", "nodes", "/node-1"),
		asked(1, "update", "leases.coordination.k8s.io", "ship-system/lock"), asked(1, "create", "events", "team-a/"), asked(1, "create", "pods/eviction", "team-a/x"),
		asked(1, "deletecollection", "pods", "team-a/"), asked(1, "watch", "customresourcedefinitions.apiextensions.k8s.io", "/frigates.sea"),
		implied(asked(1, "bind", "clusterroles.rbac.authorization.k8s.io", "/view"), "binding"),
	)})
	report := Compare(observed, Granted{}, Options{})
	granted := Granted{Source: "the proposal"}
	for _, role := range report.Proposal {
		for _, rule := range role.Rules {
			granted.Rules = append(granted.Rules, Rule{PolicyRule: rule, Namespace: role.Namespace, From: "proposal"})
		}
	}
	again := Compare(observed, granted, Options{})
	if got := found(again.Findings); got != "" {
		t.Errorf("the proposal differs from what is needed:\n%s", got)
	}
	if proposed(again) != proposed(report) {
		t.Errorf("got\n%sbefore\n%s", proposed(again), proposed(report))
	}
}

// An operator that tries all namespaces, and then lists in its own, does not need the former.
func TestRefusedRequestsDoNotWiden(t *testing.T) {
	list := asked(2, "list", "frigates.sea", "all", "shop/")
	list.Count, list.Forbidden, list.ForbiddenAt = 4, 2, &lens.Places{ClusterWide: 2, Unnamed: 2}
	elsewhere := asked(1, "get", "configmaps", "shop/a", "other/b")
	elsewhere.Count, elsewhere.Forbidden = 2, 1
	elsewhere.ForbiddenAt = &lens.Places{Namespaces: map[string]uint64{"other": 1}, Names: map[string]uint64{"b": 1}}
	uses := []*lens.Use{list, elsewhere, refused(asked(1, "watch", "frigates.sea", "all")), asked(1, "update", "configmaps", "shop/a")}
	report := Compare(Merge([]*Recording{recorded(uses...)}), Granted{}, Options{})
	const want = "get configmaps in shop\nupdate configmaps in shop\nlist frigates.sea in shop\nwatch frigates.sea (refused)\n"
	if got := lines(report.Needs); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	wantNotes := []string{
		"get on configmaps in namespace other is not proposed: 1 request was refused there",
		"list on frigates.sea in all namespaces is not proposed: 2 requests were refused there",
	}
	if got := report.Notes[:min(2, len(report.Notes))]; !slices.Equal(got, wantNotes) {
		t.Errorf("got notes %q", report.Notes)
	}
	// A recording in which everything was refused does not widen what another one shows.
	first := recorded(refused(asked(1, "list", "frigates.sea", "all")))
	second := recorded(asked(1, "list", "frigates.sea", "shop/"))
	if got := lines(Compare(Merge([]*Recording{first, second}), Granted{}, Options{}).Needs); got != "list frigates.sea in shop\n" {
		t.Errorf("of two recordings: %s", got)
	}
	report = Compare(Merge([]*Recording{recorded(uses...)}), Granted{}, Options{IncludeRefused: true})
	if got := lines(report.Needs); strings.Contains(got, "list frigates.sea in") {
		t.Errorf("with refused requests, got\n%s", got)
	}
}

func TestRefusedAlthoughGranted(t *testing.T) {
	report := Compare(Merge([]*Recording{recorded(watches, refused(asked(3, "create", "roles.rbac.authorization.k8s.io", "default/")))}),
		Granted{Source: "roles", Rules: []Rule{grantedWatches, rule("role", "", "rbac.authorization.k8s.io", "roles", "create")}}, Options{})
	const want = "create on roles.rbac.authorization.k8s.io is granted, but 3 requests were refused: " +
		"the role has changed since, or the check against escalation is the reason"
	if !slices.Contains(report.Notes, want) {
		t.Errorf("got notes %q, want %q", report.Notes, want)
	}
}

// TestAnAdministratorGetsNoEscalate is for an operator that may do anything, and writes roles.
func TestAnAdministratorGetsNoEscalate(t *testing.T) {
	observed := Merge([]*Recording{recorded(
		watches, asked(1, "create", "roles.rbac.authorization.k8s.io", "default/"), implied(asked(1, "escalate", "roles.rbac.authorization.k8s.io", "default/"), "role"),
		implied(asked(1, "get", "endpoints", "default/"), lens.GivenAway),
	)})
	report := Compare(observed, Granted{Source: "roles", Rules: []Rule{rule("admin", "", "*", "*", "*")}}, Options{})
	got := proposed(report)
	if strings.Contains(got, "escalate") || !strings.Contains(got, `groups="",resources=endpoints,verbs=get`) {
		t.Errorf("got\n%s", got)
	}
}

// A chart does not say where it is installed.
func TestRulesOfAnUnknownNamespace(t *testing.T) {
	rules := []Rule{{Namespace: "default"}, {Namespace: "elsewhere"}, {}}
	for assumed, want := range map[string]string{"default": "ops", "": "default"} {
		got := (&Granted{Rules: rules, Assumed: assumed}).in("ops")
		if got[0].Namespace != want || got[1].Namespace != "elsewhere" || got[2].Namespace != "" {
			t.Errorf("assumed %q: got %v", assumed, got)
		}
	}
}
