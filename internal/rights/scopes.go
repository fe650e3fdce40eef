// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
)

// maxFixedNames is the maximum length of a list of names that could be hand-written.
const maxFixedNames = 8

// scopes decides where rights are proposed, and for which objects.
type scopes struct {
	o *Observed
	// own is the namespace of the operator; empty if unknown.
	own string
	// includeRefused says that refused requests count like others.
	includeRefused bool
	// escalates means that rules name the verb escalate for all roles that the operator writes: it need not have the rights that these
	// grant.
	// binds means that it may bind the roles that it binds: it need not have the rights that these grant.
	escalates, binds bool
	// unlisted means that a role that the operator writes grants more than is known. It is proposed to escalate instead of what is not
	// known, so it must be able to bind the role without having its rights.
	unlisted bool
	// incomplete means that events are missing in a recording, or were lost before, so not all objects that are reconciled are known.
	incomplete bool
	// inNoNamespace are resources that are known to be cluster-scoped.
	inNoNamespace map[schema.GroupResource]bool
	// byResource holds the requests for a resource and its subresources.
	byResource map[schema.GroupResource]*Evidence
	// everywhere names a resource that the operator asked for in all namespaces; nil if there is none.
	everywhere *schema.GroupResource
	// watched are the namespaces in which the operator lists or watches objects. chosen are the ones that it watches, which its
	// settings name.
	watched, chosen map[string]bool
}

// newScopes finds out which resources are cluster-scoped.
func newScopes(o *Observed, own string, options Options) *scopes {
	s := &scopes{
		o: o, own: own, includeRefused: options.IncludeRefused, incomplete: o.Missing+o.Lost > 0, inNoNamespace: maps.Clone(clusterScoped),
		byResource: map[schema.GroupResource]*Evidence{}, watched: map[string]bool{}, chosen: map[string]bool{},
	}
	for resource := range o.facts.inNone {
		s.inNoNamespace[resource] = !o.facts.inNamespaces[resource] // what is only listed or watched shows it by its objects
	}
	maps.Copy(s.inNoNamespace, options.ClusterScoped)
	for _, used := range o.uses {
		s.unlisted = s.unlisted || used.implied == lens.WritesUnknown
		resource, named := baseOf(used.Right), len(used.Names) > 0 && used.Verb != "list" && used.Verb != "watch"
		if _, known := s.inNoNamespace[resource]; !known && named && used.ClusterWide > 0 && used.implied == "" && !o.facts.inNamespaces[resource] {
			s.inNoNamespace[resource] = true // a request for one object in a namespace names that namespace
		}
	}
	return s
}

// collect adds up what was requested. It includes what was always refused only if refused requests count as well.
func (s *scopes) collect() {
	for _, used := range s.o.uses {
		if used.URL != "" || everybodys(used.Right) != "" || s.onlyRefused(&used.Evidence) || s.isFree(used) || s.isNeedless(used) {
			continue
		}
		resource, evidence := baseOf(used.Right), s.normal(used)
		if s.byResource[resource] == nil {
			s.byResource[resource] = &Evidence{}
		}
		s.byResource[resource].add(&evidence)
		if s.inNoNamespace[resource] {
			continue
		}
		if evidence.ClusterWide > 0 && s.everywhere == nil && used.implied == "" {
			s.everywhere = &resource
		}
		if used.Verb == "list" || used.Verb == "watch" {
			for namespace := range evidence.Namespaces {
				s.watched[namespace] = true
				s.chosen[namespace] = s.chosen[namespace] || used.Verb == "watch"
			}
		}
	}
	maps.DeleteFunc(s.watched, func(namespace string, _ bool) bool { return s.varies(namespace) })
}

// isFree reports whether the operator can give a right away without having it.
func (s *scopes) isFree(used *use) bool {
	return used.implied == lens.GivenAway && s.escalates || used.implied == lens.Bound && s.binds
}

// isNeedless reports whether a use is the right to bind nothing but roles that the operator writes. Without the right to escalate
// it needs all rights that these grant, and then it may bind them.
func (s *scopes) isNeedless(used *use) bool {
	if used.Verb != "bind" || !isAlternative(used.Right) || s.escalates {
		return false
	}
	evidence := s.normal(used)
	return used.implied == lens.BindsWritten || evidence.Unnamed == 0 && !evidence.Many && len(evidence.Names) == 0
}

// varies reports whether a namespace belongs to an object that is reconciled: the next object will have another one.
func (s *scopes) varies(namespace string) bool {
	return s.o.facts.madeNamespaces[namespace] || !s.chosen[namespace] && namespace != s.own && (s.incomplete || s.o.facts.isNamedAfter(namespace))
}

// onlyRefused reports whether requests show nothing but that they were refused.
func (s *scopes) onlyRefused(e *Evidence) bool {
	return !s.includeRefused && e.Requests > 0 && e.Refused == e.Requests
}

func baseOf(right Right) schema.GroupResource {
	resource, _, _ := strings.Cut(right.Resource, "/")
	return schema.GroupResource{Group: right.Group, Resource: resource}
}

// normal is the evidence of a use, where what is in no namespace is in none: the owner of an object in a namespace, for
// example, may be.
func (s *scopes) normal(used *use) Evidence {
	evidence := used.Evidence
	if !s.includeRefused {
		evidence.dropRefused()
	}
	if used.Verb == "bind" && used.Group == rbacv1.GroupName && used.Resource == "clusterroles" && !s.escalates && !s.unlisted {
		evidence.Names = maps.Clone(evidence.Names)
		maps.DeleteFunc(evidence.Names, func(name string, _ uint64) bool { return s.o.facts.clusterRoles[name] })
	}
	if s.isInNoNamespace(used.Right) && len(evidence.Namespaces) > 0 {
		for _, count := range evidence.Namespaces {
			evidence.ClusterWide += count
		}
		evidence.Namespaces = nil
	}
	return evidence
}

// isInNoNamespace reports whether a right holds only in the whole cluster. The right to bind a ClusterRole is checked in the namespace
// of the binding.
func (s *scopes) isInNoNamespace(right Right) bool {
	return right.Verb != "bind" && s.inNoNamespace[baseOf(right)]
}

// namespaces are where a right is proposed; nil for the whole cluster. An operator that watches all namespaces does the same
// in each, so only what it does in its own namespace, where it reconciles nothing, is limited to that. Namespaces that differ with
// what is reconciled are not known before.
func (s *scopes) namespaces(n *Need) []string {
	resource := baseOf(n.Right)
	seen := s.byResource[resource]
	if seen == nil || s.onlyRefused(&n.Evidence) || n.Part == LeaderElection || n.Verb == "bind" { // a lock is where the operator is, whatever else it does
		seen = n.reach()
	}
	switch {
	case n.URL != "", s.isInNoNamespace(n.Right), seen.ClusterWide > 0, seen.Many && len(seen.Namespaces) > maxFixedNames, len(seen.Namespaces) == 0:
		return nil
	case s.onlyInOwn(seen, n.Part) && n.Part != EventRecorder:
		return []string{s.own}
	case s.everywhere != nil:
		return nil
	}
	all := maps.Clone(s.watched)
	for namespace := range seen.Namespaces {
		if s.varies(namespace) {
			n.because(s.o.facts.whyMentioned("namespace", namespace))
			return nil
		}
		all[namespace] = true
	}
	return slices.Sorted(maps.Keys(all))
}

// onlyInOwn reports whether something happened only in the operator's own namespace, where nothing is reconciled. If not all
// that is reconciled is known, only a lock is certain to be there.
func (s *scopes) onlyInOwn(e *Evidence, part Part) bool {
	if s.incomplete && part != LeaderElection {
		return false
	}
	return s.own != "" && len(e.Namespaces) == 1 && e.Namespaces[s.own] > 0 && e.ClusterWide == 0 && !s.o.facts.subjectNamespaces[s.own]
}

// names returns the object names that a right is limited to; nil for all. Names that may come from custom resources
// change, so they are not used.
func (s *scopes) names(n *Need) []string {
	e := n.reach()
	switch {
	case !namesCount(n.Right), e.Unnamed > 0, e.Many, len(e.Names) == 0:
		return nil
	case n.Verb == "bind":
		// The right to bind any role would be the right to do anything.
		return s.boundNames(n, e)
	case baseOf(n.Right) == signers:
		// The right to approve for any signer would be the right to become anybody.
		return s.signerNames(n, e)
	case len(e.Names) > maxFixedNames:
		return nil
	case n.Verb == "impersonate":
		// Users are the same on every cluster.
	case n.Part == EventRecorder, IsCustom(n.Group):
		return nil
	case baseOf(n.Right) == schema.GroupResource{Resource: "pods"}:
		// An operator may look up its own pod, whose name is another one with each rollout.
		return nil
	case !s.onlyInOwn(e, n.Part) && !installed[baseOf(n.Right)]:
		return nil
	case s.incomplete && n.Part != LeaderElection:
		return nil
	case len(s.o.facts.subjects) == 0 && n.Part != LeaderElection:
		return nil // nothing was reconciled, so nothing shows what depends on it
	}
	names := slices.Sorted(maps.Keys(e.Names))
	if i := slices.IndexFunc(names, s.o.facts.isNamedAfter); i >= 0 {
		n.because(s.o.facts.whyMentioned("name", names[i]))
		return nil
	}
	return names
}

// boundNames returns the names of the roles that the operator binds, and explains if others may have to be added.
func (s *scopes) boundNames(n *Need, e *Evidence) []string {
	names := slices.Sorted(maps.Keys(e.Names))
	n.mayBindOthers = slices.ContainsFunc(names, s.o.facts.isNamedAfter)
	if n.mayBindOthers || s.incomplete {
		n.because("limited to the roles that were bound, because a right to bind any role is a right to do anything; a custom resource may lead to others, which must be added")
	}
	return names
}

// signerNames returns the names of the signers that the operator approves or signs for, and explains if others may have to be added.
func (s *scopes) signerNames(n *Need, e *Evidence) []string {
	names := slices.Sorted(maps.Keys(e.Names))
	if s.incomplete || slices.ContainsFunc(names, s.o.facts.isNamedAfter) {
		n.because("limited to the signers that were used, because a right for all signers is a right to issue any identity; a custom resource may lead to others, which must be added")
	}
	return names
}

// whyMentioned explains why a right is not limited to a name; empty if no custom resource mentions it.
func (f *facts) whyMentioned(what, name string) string {
	if !f.mentioned[name] {
		return ""
	}
	return fmt.Sprintf("not limited to the %s %s: it contains a value of a custom resource, and the next one may have another value", what, name)
}

// isNamedAfter reports whether a name may come from an object that is reconciled: from its name, or from a value that it contains.
func (f *facts) isNamedAfter(name string) bool {
	if f.mentioned[name] {
		return true
	}
	for subject := range f.subjects {
		if strings.Contains(subject, name) || containsName(name, subject) {
			return true
		}
	}
	return false
}

// minSubject is the length of the shortest name of a reconciled object that is found anywhere within another name.
const minSubject = 4

// containsName reports whether a name contains another one: anywhere, or between separators if that is short, because short ones
// are in too many names.
func containsName(name, part string) bool {
	if len(part) >= minSubject {
		return strings.Contains(name, part)
	}
	uniform := strings.NewReplacer(".", "-", ":", "-")
	return strings.Contains("-"+uniform.Replace(name)+"-", "-"+uniform.Replace(part)+"-")
}
