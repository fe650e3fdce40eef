// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
)

// TestEscalateIsProposedOnlyWhereItIsGranted has an operator that writes Roles and ClusterRoles.
func TestEscalateIsProposedOnlyWhereItIsGranted(t *testing.T) {
	const (
		group    = "rbac.authorization.k8s.io"
		reason   = "a role can grant only what its writer has"
		marker   = "+kubebuilder:rbac:groups=" + group + ",resources="
		getPods  = "resources=pods,verbs=get\n"
		limited  = marker + "clusterroles,resourceNames=crew,verbs=escalate\n"
		inTeam   = marker + "roles,verbs=escalate,namespace=team-a\n"
		onRoles  = marker + "roles,verbs=escalate\n"
		onBoth   = marker + "clusterroles;roles,verbs=escalate\n"
		missPods = "missing: get pods: " + lens.GivenAway + "\n"
	)
	given := func() *lens.Use { return implied(asked(1, "get", "pods", "team-a/"), lens.GivenAway) }
	writesRole := func() *lens.Use { return implied(asked(1, "escalate", roles, "team-a/"), reason) }
	writesClusterRole := func() *lens.Use { return implied(asked(1, "escalate", clusterRoles, "/"), reason) }
	for name, test := range map[string]struct {
		uses  []*lens.Use
		rules []Rule
		want  []string // of the proposal
		found string
	}{
		"on both":              {[]*lens.Use{given(), writesRole(), writesClusterRole()}, []Rule{rule("role", "", group, "roles,clusterroles", "escalate")}, []string{onBoth}, ""},
		"on the other kind":    {[]*lens.Use{given(), writesRole()}, []Rule{rule("role", "", group, "clusterroles", "escalate")}, []string{getPods}, missPods + "unused: escalate " + clusterRoles + "\n"},
		"on one of both kinds": {[]*lens.Use{given(), writesRole(), writesClusterRole()}, []Rule{rule("role", "", group, "roles", "escalate")}, []string{getPods}, missPods},
		"the other write was refused": {
			[]*lens.Use{given(), writesRole(), refused(writesClusterRole())}, []Rule{rule("role", "", group, "roles", "escalate")}, []string{onRoles}, "",
		},
		"in its namespace":      {[]*lens.Use{given(), writesRole()}, []Rule{rule("role", "team-a", group, "roles", "escalate")}, []string{inTeam}, ""},
		"in another namespace":  {[]*lens.Use{given(), writesRole()}, []Rule{rule("role", "team-b", group, "roles", "escalate")}, []string{getPods}, missPods + "unused: escalate " + roles + "\n"},
		"on one ClusterRole":    {[]*lens.Use{given(), writesClusterRole()}, []Rule{rule("role", "", group, "clusterroles", "escalate", "crew")}, []string{limited}, ""},
		"without what it gives": {[]*lens.Use{writesRole()}, []Rule{rule("role", "team-a", group, "roles", "escalate")}, []string{inTeam}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			granted := Granted{Source: "roles", Rules: append(test.rules, grantedWatches)}
			report := Compare(Merge([]*Recording{recorded(append(test.uses, watches)...)}), granted, Options{})
			got := proposed(report)
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("proposed is\n%swant\n%s", got, part)
				}
			}
			if has, wants := strings.Count(got, "escalate"), strings.Count(strings.Join(test.want, ""), "escalate"); has != wants {
				t.Errorf("escalate is proposed too often:\n%s", got)
			}
			if got := found(report.Findings); got != test.found {
				t.Errorf("found is\n%swant\n%s", got, test.found)
			}
		})
	}
}
