// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"maps"
	"slices"
	"strings"
)

// lock is an object by which a leader is elected, and which is not a Lease.
type lock struct{ resource, namespace, name string }

var (
	// lockResources are what held locks before Leases did.
	lockResources = []string{"configmaps", "endpoints"}
	// lockVerbs are what an election needs. A role that is only for an election may grant more, for elections of other makes: the
	// leader for life of operator-sdk, for example, deletes the pod of a leader that was evicted.
	lockVerbs      = []string{"get", "create", "update"}
	moreLockVerbs  = []string{"list", "watch", "patch", "delete"}
	leaderForLife  = []string{"get", "delete"}
	whyLock        = "leader election keeps a lock in a ConfigMap or Endpoints"
	whyUnseenLocks = "leader election of older operators keeps a lock in a ConfigMap or Endpoints, and the recordings show no election"
)

// locks adds the rights of an election whose lock was seen.
func (o *Observed) locks(s *scopes, need func(Right) *Need) {
	for _, resource := range lockResources {
		var held Evidence
		for one := range o.facts.locks {
			if one.resource == resource {
				held.add(&Evidence{Namespaces: count([]string{one.namespace}), Names: count([]string{one.name})})
			}
		}
		if len(held.Names) == 0 {
			continue
		}
		for _, verb := range lockVerbs {
			n := need(Right{Verb: verb, Resource: resource})
			switch {
			case n.isFree, n.Implied && s.onlyRefused(&n.Evidence):
				n.Evidence, n.Refused = held, false
			case n.Implied && n.Evidence.Requests == 0:
				n.Evidence.add(&held)
				n.Refused = false
			case n.Implied:
				n.implied.add(&held)
				n.Refused = false
			}
			n.GivenAway, n.isFree = false, false
			n.because(whyLock)
			if isSubset(n.Evidence.Names, held.Names) && isSubset(n.Evidence.Namespaces, held.Namespaces) && n.Evidence.Unnamed+n.Evidence.ClusterWide == 0 {
				n.Part = LeaderElection
			}
		}
	}
}

func isSubset(of, all map[string]uint64) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Keys(of)), func(name string) bool { return all[name] == 0 })
}

// lockRights are the rights to a lock that a part of a rule grants, if the recordings show no election: while they are made, it
// is usually off. The name of the lock is not known then.
func (c *comparison) lockRights(part atom) (rights []Right) {
	role := part.rule
	named := strings.Contains(strings.ToLower(role.From), "leader")
	if c.elected || role.Namespace == "" || !named && !c.grantsLeases(role) {
		return nil
	}
	add := func(resource string, verbs ...string) {
		for _, verb := range verbs {
			if right := (Right{Verb: verb, Resource: resource}); part.includes(right) {
				rights = append(rights, right)
			}
		}
	}
	for _, resource := range lockResources {
		add(resource, lockVerbs...)
		if named && !part.isWild() {
			add(resource, moreLockVerbs...)
		}
	}
	if named && !part.isWild() {
		add("pods", leaderForLife...)
	}
	return rights
}

// grantsLeases reports whether the role of a rule also grants the right to a lease.
func (c *comparison) grantsLeases(role *Rule) bool {
	lease := Right{Verb: "update", Group: "coordination.k8s.io", Resource: "leases"}
	return slices.ContainsFunc(c.rules, func(other Rule) bool {
		return other.From == role.From && other.Namespace == role.Namespace && other.covers(lease, place{namespace: role.Namespace})
	})
}
