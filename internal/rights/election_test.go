// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// TestElectionsWithoutLeases are those of controller-runtime before 0.12. Recordings are made without an election.
func TestElectionsWithoutLeases(t *testing.T) {
	const (
		leases  = "kept: get,create,update leases.coordination.k8s.io: leader election keeps a lease\n"
		usual   = "get,list,watch,create,update,patch,delete"
		marker  = "+kubebuilder:rbac:groups=\"\",resources=configmaps,"
		leader  = "Role leader-election-role"
		system  = "ship-system"
		mapRead = "ship-system/settings"
	)
	lease := rule(leader, system, "coordination.k8s.io", "leases", "get,create,update")
	for name, test := range map[string]struct {
		uses           []*lens.Use
		rules          []Rule
		want, proposed string
	}{
		"a role for it": {
			nil, []Rule{rule(leader, system, "", "configmaps", usual), lease},
			"kept: " + usual + " configmaps: " + whyUnseenLocks + "\n" + leases, "verbs=get;list;watch;create;update;patch;delete,namespace=ship-system",
		},
		"a role for it without leases": {
			nil, []Rule{rule("Role the-Leader", system, "", "endpoints,pods,secrets", "get,delete,create")},
			"unused: create pods\nunused: get,create,delete secrets\nkept: get,create,delete endpoints: " + whyUnseenLocks + "\nkept: get,delete pods: " + whyUnseenLocks + "\n", "",
		},
		"a role for all": {
			nil, []Rule{rule("Role ship", system, "", "configmaps", usual), rule("Role ship", system, "coordination.k8s.io", "leases", "*")},
			"unused: list,watch,patch,delete configmaps\nkept: get,create,update configmaps: " + whyUnseenLocks + "\nkept: * leases.coordination.k8s.io: leader election keeps a lease\n",
			"verbs=get;create;update,namespace=ship-system",
		},
		"a role for something else": {
			nil, []Rule{rule("Role ship", system, "", "configmaps", "get,create,update"), lease}, "unused: get,create,update configmaps\n" + leases, "",
		},
		"the whole cluster": {
			nil, []Rule{rule("ClusterRole leader", "", "", "configmaps", "get,create,update")}, "unused: get,create,update configmaps\n", "",
		},
		"another ConfigMap is read there": {
			[]*lens.Use{asked(1, "get", "configmaps", mapRead)}, []Rule{rule(leader, system, "", "configmaps", "get,create,update"), lease},
			"kept: create,update configmaps: " + whyUnseenLocks + "\n" + leases, "verbs=get;create;update,namespace=ship-system",
		},
		"a name": {
			[]*lens.Use{asked(1, "get", "configmaps", mapRead)}, []Rule{rule(leader, system, "", "configmaps", "get,update", "settings", "ship-lock"), lease},
			"kept: update configmaps: " + whyUnseenLocks + "\n" + leases, "resourceNames=settings;ship-lock,verbs=get;update,namespace=ship-system",
		},
		"an election by a Lease was seen": {
			[]*lens.Use{asked(1, "update", "leases.coordination.k8s.io", "ship-system/ship-lock")}, []Rule{rule(leader, system, "", "configmaps", usual), lease},
			"unused: " + usual + " configmaps\n" + "broader: get,update leases.coordination.k8s.io: all names, used only for ship-lock\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := Compare(Merge([]*Recording{recorded(append(test.uses, watches)...)}), Granted{Source: "roles", Rules: append(test.rules, grantedWatches)}, Options{})
			if got := found(report.Findings); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
			if got := proposed(report); test.proposed != "" && !strings.Contains(got, marker+test.proposed+"\n") || test.proposed == "" && strings.Contains(got, marker) {
				t.Errorf("proposed is\n%swant %s", got, test.proposed)
			}
		})
	}
}

// TestLocks has an operator that renews its lock, which is older than the recording.
func TestLocks(t *testing.T) {
	renewal := func(uses ...*lens.Use) *Recording {
		r := recorded(append(uses, watches)...)
		r.See(&lens.Event{Request: &lens.Request{
			Verb: "update", Resource: lens.Resource{Version: "v1", Resource: "configmaps", Namespace: "ship-system", Name: "ship-lock"}, Status: 200,
			Change: &lens.Change{Fields: []why.Change{{Path: "metadata.annotations.control-plane.alpha.kubernetes.io/leader"}}},
		}})
		return r
	}
	const watched = "list frigates.sea (implied)\nwatch frigates.sea\n"
	for name, test := range map[string]struct {
		recording *Recording
		want      string
	}{
		"only the lock": {
			renewal(asked(9, "update", "configmaps", "ship-system/ship-lock")),
			"get configmaps in ship-system only ship-lock (implied) (leader election)\ncreate configmaps in ship-system (implied) (leader election)\n" +
				"update configmaps in ship-system only ship-lock (leader election)\n" + watched,
		},
		"others, too": {
			renewal(asked(9, "update", "configmaps", "ship-system/ship-lock", "default/victory"), asked(1, "create", "configmaps", "default/")),
			"get configmaps in ship-system only ship-lock (implied) (leader election)\ncreate configmaps\nupdate configmaps\n" + watched,
		},
		"a role that was refused": {
			renewal(asked(9, "update", "configmaps", "ship-system/ship-lock"), refused(implied(asked(1, "get", "configmaps", "default/"), lens.GivenAway))),
			"get configmaps in ship-system only ship-lock (implied) (leader election)\ncreate configmaps in ship-system (implied) (leader election)\n" +
				"update configmaps in ship-system only ship-lock (leader election)\n" + watched,
		},
	} {
		t.Run(name, func(t *testing.T) {
			report := Compare(Merge([]*Recording{test.recording}), Granted{}, Options{})
			if got := lines(report.Needs); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}
