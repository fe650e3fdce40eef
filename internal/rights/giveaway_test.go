// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

// TestBindings has operators that bind a role, and that may do so for different reasons.
func TestBindings(t *testing.T) {
	const (
		roles    = "clusterroles.rbac.authorization.k8s.io"
		marker   = "+kubebuilder:rbac:groups="
		bindView = marker + "rbac.authorization.k8s.io,resources=clusterroles,resourceNames=view,verbs=bind\n"
		pods     = marker + "\"\",resources=pods,verbs=get\n"
		frigates = marker + "sea,resources=frigates,verbs=list;watch\n"
		bindBoth = marker + "rbac.authorization.k8s.io,resources=clusterroles,resourceNames=edit;view,verbs=bind\n"
		note     = "bind on " + roles + " is proposed for "
	)
	binds := implied(asked(1, "bind", roles, "/view"), "a binding can grant only what its writer has")
	unknown := implied(asked(1, "bind", roles, "/view"), lens.BindsUnknown)
	bound := implied(asked(1, "get", "pods", "default/"), lens.Bound)
	written := implied(asked(1, "get", "pods", "default/"), lens.GivenAway)
	hasRights := rule("role", "", "", "pods", "get")
	mayBind := rule("role", "", "rbac.authorization.k8s.io", "clusterroles", "bind")
	mayEscalate := rule("role", "", "rbac.authorization.k8s.io", "roles", "escalate")
	for name, test := range map[string]struct {
		uses  []*lens.Use
		rules []Rule
		want  string
		found string
		noted bool
	}{
		"has the rights of a known role":       {[]*lens.Use{binds, bound}, []Rule{hasRights}, pods + frigates, "", false},
		"may bind a known role":                {[]*lens.Use{binds, bound}, []Rule{hasRights, mayBind}, bindView + frigates, "unused: get pods\nbroader: bind " + roles + ": all names, used only for view\n", false},
		"has the rights of an unknown role":    {[]*lens.Use{unknown}, []Rule{hasRights}, bindView + frigates, "unused: get pods\n", true},
		"may bind an unknown role":             {[]*lens.Use{unknown}, []Rule{rule("role", "", "rbac.authorization.k8s.io", "clusterroles", "bind", "view")}, bindView + frigates, "", false},
		"one is known":                         {[]*lens.Use{unknown, implied(asked(1, "bind", roles, "/edit"), "known"), bound}, []Rule{hasRights}, bindBoth + frigates, "unused: get pods\n", true},
		"one is known, and may be bound":       {[]*lens.Use{unknown, implied(asked(1, "bind", roles, "/edit"), "known"), bound}, []Rule{hasRights, rule("role", "", "rbac.authorization.k8s.io", "clusterroles", "bind", "edit")}, bindBoth + frigates, "unused: get pods\n", true},
		"may escalate, which is no bind":       {[]*lens.Use{binds, bound, written}, []Rule{hasRights, mayEscalate}, pods + frigates, "unused: escalate roles.rbac.authorization.k8s.io\n", false},
		"may bind, which does not write roles": {[]*lens.Use{binds, bound, written}, []Rule{hasRights, mayBind}, pods + bindView + frigates, "broader: bind " + roles + ": all names, used only for view\n", false},
		"may do both":                          {[]*lens.Use{binds, bound, written}, []Rule{hasRights, mayBind, mayEscalate}, bindView + frigates, "unused: get pods\nunused: escalate roles.rbac.authorization.k8s.io\nbroader: bind " + roles + ": all names, used only for view\n", false},
		"no rights are known":                  {[]*lens.Use{binds, bound}, nil, bindView + frigates, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			granted := Granted{}
			if test.rules != nil {
				granted = Granted{Source: "roles", Rules: append(test.rules, grantedWatches)}
			}
			report := Compare(Merge([]*Recording{recorded(append(test.uses, watches)...)}), granted, Options{})
			if got := proposed(report); got != test.want {
				t.Errorf("proposed is\n%swant\n%s", got, test.want)
			}
			if got := found(report.Findings); got != test.found {
				t.Errorf("found is\n%swant\n%s", got, test.found)
			}
			if noted := slices.ContainsFunc(report.Notes, func(one string) bool { return strings.HasPrefix(one, note) }); noted != test.noted {
				t.Errorf("got notes %q", report.Notes)
			}
		})
	}
}

// TestReasonsDoNotReplaceEachOther has an operator that may escalate, and needs a right both to create ConfigMaps and to grant it.
func TestReasonsDoNotReplaceEachOther(t *testing.T) {
	place := lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "default"}
	named := place
	named.Name = "victory"
	applied := lens.Event{Request: &lens.Request{
		Verb: "apply", Resource: named, Status: 201, Implies: []lens.Implied{{Verb: "create", Resource: place, Because: "this apply created the object"}},
	}}
	role := lens.Event{Request: &lens.Request{
		Verb: "create", Resource: lens.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles", Namespace: "default", Name: "x"}, Status: 201,
		Implies: []lens.Implied{{Verb: "create", Resource: place, Because: lens.GivenAway}},
	}}
	granted := Granted{Source: "roles", Rules: []Rule{
		rule("role", "", "", "configmaps", "create,patch"), rule("role", "", "rbac.authorization.k8s.io", "roles", "create,escalate"),
	}}
	for name, recordings := range map[string][]*Recording{
		"the role comes last":     {collected(t, 1, applied, role)},
		"the role comes first":    {collected(t, 1, role, applied)},
		"in different recordings": {collected(t, 1, applied), collected(t, 1, role)},
		"in the other order":      {collected(t, 1, role), collected(t, 1, applied)},
	} {
		if got := proposed(Compare(Merge(recordings), granted, Options{})); !strings.Contains(got, "resources=configmaps,verbs=create;patch") {
			t.Errorf("%s: proposed is\n%s", name, got)
		}
	}
}
