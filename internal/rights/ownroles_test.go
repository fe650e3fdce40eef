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

const (
	clusterRoles = "clusterroles.rbac.authorization.k8s.io"
	roles        = "roles.rbac.authorization.k8s.io"
)

// wroteRole is the create of a role, and its answer.
func wroteRole(resource, namespace, name string, status int) *lens.Event {
	return &lens.Event{Request: &lens.Request{
		Verb: "create", Status: status,
		Resource: lens.Resource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource, Namespace: namespace, Name: name},
	}}
}

// TestRightsThatAreUsedAndGivenAway must reach all places of both.
func TestRightsThatAreUsedAndGivenAway(t *testing.T) {
	own := func() *lens.Use { return asked(1, "get", "secrets", "ship-system/webhook-server-cert") }
	given := func(why string) *lens.Use { return implied(asked(1, "get", "secrets", "default/"), why) }
	binds := func() *lens.Use { return implied(asked(1, "bind", clusterRoles, "default/reader"), "known") }
	inOwn := rule("role", "ship-system", "", "secrets", "get", "webhook-server-cert")
	inDefault := rule("role", "default", "", "secrets", "get")
	escalates := rule("role", "", "rbac.authorization.k8s.io", "roles", "escalate")
	mayBind := rule("role", "default", "rbac.authorization.k8s.io", "clusterroles", "bind", "reader")
	const limited = "get secrets in ship-system only webhook-server-cert\n"
	for name, test := range map[string]struct {
		uses  []*lens.Use
		rules []Rule
		need  string
		found string
	}{
		"nothing is granted":       {[]*lens.Use{own(), given(lens.GivenAway)}, nil, "get secrets\n", ""},
		"both are granted":         {[]*lens.Use{own(), given(lens.GivenAway)}, []Rule{inOwn, inDefault}, "get secrets in default,ship-system\n", ""},
		"only the use is granted":  {[]*lens.Use{own(), given(lens.GivenAway)}, []Rule{inOwn}, "get secrets\n", "missing: get secrets: " + lens.GivenAway + "\n"},
		"it may escalate":          {[]*lens.Use{own(), given(lens.GivenAway)}, []Rule{inOwn, escalates}, limited, "unused: escalate " + roles + "\n"},
		"it may not bind":          {[]*lens.Use{own(), given(lens.Bound), binds()}, []Rule{inOwn}, "get secrets\n", "missing: get secrets: " + lens.Bound + "\n"},
		"it may bind":              {[]*lens.Use{own(), given(lens.Bound), binds()}, []Rule{inOwn, mayBind}, limited, ""},
		"it escalates, and a role": {[]*lens.Use{own(), given(lens.GivenAway), given(lens.Bound), binds()}, []Rule{inOwn, escalates}, "get secrets\n", "missing: get secrets: " + lens.Bound + "; " + lens.GivenAway + "\nunused: escalate " + roles + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			granted := Granted{}
			if test.rules != nil {
				granted = Granted{Source: "roles", Rules: append(test.rules, grantedWatches)}
			}
			report := Compare(Merge([]*Recording{recorded(append(test.uses, watches)...)}), granted, Options{})
			got := lines(slices.DeleteFunc(slices.Clone(report.Needs), func(n *Need) bool { return n.Resource != "secrets" }))
			if got != test.need {
				t.Errorf("got\n%swant\n%s", got, test.need)
			}
			if got := found(report.Findings); got != test.found {
				t.Errorf("found is\n%swant\n%s", got, test.found)
			}
		})
	}
}

// TestGivenListsDoNotLimitInformers has an informer of Secrets whose list is streamed, and a role that grants the list of one Secret.
func TestGivenListsDoNotLimitInformers(t *testing.T) {
	given := func(where string) *lens.Use { return implied(asked(1, "list", "secrets", where), lens.GivenAway) }
	const own = "list secrets in ship-system (implied)\nwatch secrets in ship-system\n"
	for name, test := range map[string]struct {
		given   *lens.Use
		options Options
		want    string
	}{
		"written":               {given("ship-system/one"), Options{}, own},
		"refused":               {refused(given("ship-system/one")), Options{}, own},
		"refused elsewhere":     {refused(given("default/")), Options{}, own},
		"refused, which counts": {refused(given("default/")), Options{IncludeRefused: true}, "list secrets in default,ship-system (implied)\nwatch secrets in default,ship-system\n"},
	} {
		report := Compare(Merge([]*Recording{recorded(test.given, asked(1, "watch", "secrets", "ship-system/"))}), Granted{}, test.options)
		if got := lines(report.Needs); got != test.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, test.want)
		}
	}
}

// TestBindingsOfOwnRoles never leads to the right to bind any role.
func TestBindingsOfOwnRoles(t *testing.T) {
	binds := func(why string, where ...string) *lens.Use {
		return implied(asked(1, "bind", clusterRoles, where...), why)
	}
	given := func() *lens.Use { return implied(asked(1, "*", "*.sea", "all"), lens.GivenAway) }
	escalates := rule("role", "", "rbac.authorization.k8s.io", "clusterroles", "escalate")
	mayBind := rule("role", "", "rbac.authorization.k8s.io", "clusterroles", "bind")
	var many []string
	for i := range maxFixedNames + 1 {
		many = append(many, fmt.Sprintf("default/role-%d", i))
	}
	for name, test := range map[string]struct {
		written int // the answer to the write of its own role; 0 if there is none
		uses    []*lens.Use
		rules   []Rule
		want    string // the proposed right to bind
	}{
		"bound after it was written":       {201, []*lens.Use{given(), binds(lens.BindsWritten, "default/victory-admin")}, nil, ""},
		"it was there already":             {409, []*lens.Use{binds(lens.BindsUnknown, "default/victory-admin")}, []Rule{}, " in default only victory-admin"},
		"bound before it was written":      {201, []*lens.Use{given(), binds(lens.BindsUnknown, "default/victory-admin")}, nil, ""},
		"with a generated name":            {0, []*lens.Use{given(), binds(lens.BindsWritten, "default/")}, []Rule{}, ""},
		"although it may bind":             {201, []*lens.Use{given(), binds(lens.BindsUnknown, "default/victory-admin")}, []Rule{mayBind}, ""},
		"and another role":                 {201, []*lens.Use{given(), binds(lens.BindsUnknown, "default/victory-admin", "default/view")}, []Rule{}, " in default only view"},
		"it was not written":               {403, []*lens.Use{binds(lens.BindsUnknown, "default/victory-admin")}, []Rule{}, " in default only victory-admin"},
		"many others":                      {0, []*lens.Use{binds(lens.BindsUnknown, many...)}, []Rule{}, " in default only role-0,role-1,role-2,role-3,role-4,role-5,role-6,role-7,role-8"},
		"written by one that escalates":    {201, []*lens.Use{given(), binds(lens.BindsUnknown, "default/view")}, []Rule{escalates}, " in default only view"},
		"by one that escalates, own role":  {201, []*lens.Use{given(), binds(lens.BindsUnknown, "default/victory-admin")}, []Rule{escalates}, " in default only victory-admin"},
		"by one that escalates, and bound": {201, []*lens.Use{given(), binds(lens.BindsWritten, "default/victory-admin"), implied(asked(1, "*", "*.sea", "default/"), lens.Bound)}, []Rule{escalates}, " in default only victory-admin"},
	} {
		t.Run(name, func(t *testing.T) {
			granted := Granted{}
			if test.rules != nil {
				granted = Granted{Source: "roles", Rules: test.rules}
			}
			r := recorded(test.uses...)
			if test.written != 0 {
				r.See(wroteRole("clusterroles", "", "victory-admin", test.written))
			}
			report := Compare(Merge([]*Recording{r}), granted, Options{})
			got := lines(slices.DeleteFunc(slices.Clone(report.Needs), func(n *Need) bool { return n.Verb != "bind" || !n.Proposed }))
			isWildcard := func(n *Need) bool { return n.Verb == "*" && n.Proposed }
			if slices.ContainsFunc(test.rules, func(r Rule) bool { return slices.Contains(r.Verbs, "escalate") }) && slices.ContainsFunc(report.Needs, isWildcard) {
				t.Error("it is proposed what it only gives away")
			}
			isUnknown := func(u *lens.Use) bool { return u.Implied == lens.BindsUnknown }
			says := func(note string) bool { return strings.Contains(note, "do not show what all of these grant") }
			if slices.ContainsFunc(report.Notes, says) && !slices.ContainsFunc(test.uses, isUnknown) {
				t.Errorf("got notes %q", report.Notes)
			}
			if test.want != "" {
				test.want = "bind " + clusterRoles + test.want + " (implied) (alternative)\n"
			}
			if got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// TestRolesOfTheSameName has an operator that writes a Role in one namespace, and binds another one.
func TestRolesOfTheSameName(t *testing.T) {
	r := recorded(implied(asked(1, "bind", roles, "team-b/peer"), lens.BindsUnknown))
	r.See(wroteRole("roles", "team-a", "peer", 201))
	report := Compare(Merge([]*Recording{r}), Granted{}, Options{})
	if got, want := lines(report.Needs), "bind "+roles+" in team-b only peer (implied) (alternative)\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestBindingsInOneNamespace need the right to bind a ClusterRole only there.
func TestBindingsInOneNamespace(t *testing.T) {
	binds := implied(asked(1, "bind", clusterRoles, "team-a/edit"), lens.BindsUnknown)
	watches := asked(1, "watch", "frigates.sea", "team-a/")
	granted := Granted{Source: "roles", Rules: []Rule{
		rule("role", "team-a", "rbac.authorization.k8s.io", "clusterroles", "bind", "edit"), rule("role", "team-a", "sea", "frigates", "list,watch"),
	}}
	report := Compare(Merge([]*Recording{recorded(binds, watches)}), granted, Options{})
	if got := found(report.Findings); got != "" {
		t.Errorf("found is\n%s", got)
	}
	if len(report.Proposal) != 1 || report.Proposal[0].Namespace != "team-a" {
		t.Errorf("the proposal is %+v", report.Proposal)
	}
}

// TestRolesThatGrantTooMuchToList leave the choice between escalate and all that they grant.
func TestRolesThatGrantTooMuchToList(t *testing.T) {
	uses := []*lens.Use{
		implied(asked(1, "escalate", roles, "default/"), lens.WritesUnknown), implied(asked(1, "get", "pods", "default/"), lens.GivenAway), watches,
	}
	report := Compare(Merge([]*Recording{recorded(uses...)}), Granted{}, Options{})
	if got := proposed(report); !strings.Contains(got, "verbs=escalate") || !strings.Contains(got, "resources=pods,verbs=get") {
		t.Errorf("proposed is\n%s", got)
	}
	// Who has escalate in place of the rights must be able to bind them, too.
	binds := recorded(append(slices.Clone(uses), implied(asked(1, "bind", clusterRoles, "default/all"), lens.BindsUnknown))...)
	binds.See(wroteRole("clusterroles", "", "all", 201))
	if got := proposed(Compare(Merge([]*Recording{binds}), Granted{}, Options{})); !strings.Contains(got, "resourceNames=all,verbs=bind") {
		t.Errorf("proposed is\n%s", got)
	}
	// An administrator has escalate by a wildcard.
	report = Compare(Merge([]*Recording{recorded(uses...)}), Granted{Source: "roles", Rules: []Rule{rule("admin", "", "*", "*", "*")}}, Options{})
	if got := proposed(report); !strings.Contains(got, "verbs=escalate") {
		t.Errorf("proposed is\n%s", got)
	}
	report = Compare(Merge([]*Recording{recorded(uses...)}), Granted{Source: "roles", Rules: []Rule{rule("role", "", "", "pods", "get")}}, Options{})
	if got := proposed(report); strings.Contains(got, "escalate") {
		t.Errorf("proposed is\n%s", got)
	}
	if !slices.ContainsFunc(report.Notes, func(note string) bool { return strings.Contains(note, "grant more rights than a recording lists") }) {
		t.Errorf("got notes %q", report.Notes)
	}
}

// TestEscalateOnlyForRolesThatGrantTooMuch has an operator that writes an aggregated ClusterRole, and Roles all of whose rights are known.
func TestEscalateOnlyForRolesThatGrantTooMuch(t *testing.T) {
	uses := []*lens.Use{
		implied(asked(1, "escalate", clusterRoles, ""), lens.WritesUnknown), implied(asked(1, "escalate", roles, "default/"), "a role can grant only what its writer has"),
		implied(asked(1, "get", "pods", "default/"), lens.GivenAway), watches,
	}
	for name, test := range map[string]struct {
		granted Granted
		want    []string
	}{
		"no rights are known":   {Granted{}, []string{"clusterroles"}},
		"a wildcard":            {Granted{Source: "roles", Rules: []Rule{rule("admin", "", "*", "*", "*")}}, []string{"clusterroles"}},
		"only the other rights": {Granted{Source: "roles", Rules: []Rule{rule("role", "", "", "pods", "get")}}, nil},
	} {
		report := Compare(Merge([]*Recording{recorded(uses...)}), test.granted, Options{})
		var got []string
		for _, n := range report.Needs {
			if n.Verb == "escalate" && n.Proposed {
				got = append(got, n.Resource)
			}
		}
		if !slices.Equal(got, test.want) || !strings.Contains(proposed(report), "resources=pods,verbs=get") {
			t.Errorf("%s: escalate is proposed on %q, and proposed is\n%s", name, got, proposed(report))
		}
		isAboutRoles := func(note string) bool { return strings.Contains(note, " "+roles) }
		if slices.ContainsFunc(report.Notes, isAboutRoles) {
			t.Errorf("%s: got notes %q", name, report.Notes)
		}
	}
}
