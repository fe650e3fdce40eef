// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// all is the wildcard of RBAC.
const all = "*"

// Rule is a rule of RBAC that is granted.
type Rule struct {
	rbacv1.PolicyRule
	// Namespace is where it holds; empty for the whole cluster.
	Namespace string
	// From is its origin: the role, or the line of a marker.
	From string
}

// atom is the smallest part of a rule that can be unused: one verb on one resource, or on one URL.
type atom struct {
	Right
	rule *Rule
}

// atoms takes a rule apart.
func (r *Rule) atoms() (parts []atom) {
	for _, verb := range r.Verbs {
		for _, url := range r.NonResourceURLs {
			parts = append(parts, atom{Right{Verb: verb, URL: url}, r})
		}
	}
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				parts = append(parts, atom{Right{Verb: verb, Group: group, Resource: resource}, r})
			}
		}
	}
	return parts
}

// isWild reports whether a right has a wildcard.
func (r Right) isWild() bool {
	return r.Verb == all || r.Group == all || r.Resource == all || strings.HasPrefix(r.Resource, "*/") || strings.HasSuffix(r.URL, all)
}

// includes reports whether a right, which may have wildcards, grants another one, by the rules of the API server's
// RBAC authorizer.
func (r Right) includes(other Right) bool {
	if r.Verb != all && r.Verb != other.Verb {
		return false
	}
	if other.URL != "" || r.URL != "" {
		prefix, wild := strings.CutSuffix(r.URL, all)
		return r.URL != "" && other.URL != "" && (r.URL == other.URL || wild && strings.HasPrefix(other.URL, prefix))
	}
	if r.Group != all && r.Group != other.Group {
		return false
	}
	if r.Resource == all || r.Resource == other.Resource {
		return true
	}
	_, subresource, has := strings.Cut(other.Resource, "/")
	return has && r.Resource == "*/"+subresource
}

// signers are who certificates are requested from. There are no objects of this kind: it is only for rights.
var signers = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "signers"}

// place is where a right is used: in a namespace, or in the whole cluster, and on an object, or on all.
type place struct{ namespace, name string }

// covers reports whether a rule grants a right at a place.
func (r *Rule) covers(right Right, at place) bool {
	return r.reaches(right, at) && slices.ContainsFunc(r.atoms(), func(part atom) bool { return part.includes(right) })
}

// reaches reports whether a rule applies at a place.
func (r *Rule) reaches(right Right, at place) bool {
	if r.Namespace != "" && r.Namespace != at.namespace {
		return false
	}
	return right.URL != "" || len(r.ResourceNames) == 0 || slices.ContainsFunc(r.ResourceNames, func(granted string) bool { return right.isFor(granted, at.name) })
}

// isFor reports whether a name in a rule grants a right on an object. A right on all signers of a domain is called DOMAIN/*.
func (r Right) isFor(granted, name string) bool {
	domain, _, isPath := strings.Cut(name, "/")
	return granted == name || isPath && baseOf(r) == signers && granted == domain+"/*"
}

// forAllNames is a rule without its names.
func (r *Rule) forAllNames() Rule {
	rule := *r
	rule.ResourceNames = nil
	return rule
}

func covered(rules []Rule, right Right, at place) bool {
	return slices.ContainsFunc(rules, func(rule Rule) bool { return rule.covers(right, at) })
}

// places are those at which a right was used. Which name was used in which namespace is not counted, so each is taken to have
// been used in each: a narrower grant names namespaces and names.
func (e *Evidence) places(right Right) (at []place) {
	namespaces := slices.Sorted(maps.Keys(e.Namespaces))
	if e.ClusterWide > 0 || len(namespaces) == 0 {
		namespaces = append(namespaces, "")
	}
	var names []string
	if namesCount(right) {
		names = slices.Sorted(maps.Keys(e.Names))
	}
	if e.Unnamed > 0 || len(names) == 0 {
		names = append(names, "")
	}
	for _, namespace := range namespaces {
		for _, name := range names {
			at = append(at, place{namespace, name})
		}
	}
	return at
}

// namesCount says whether RBAC can limit a right to names. The name of what is created is not known when a request is
// authorized, unless it is a subresource; a collection has none. Reads of lists count when they select a name.
func namesCount(right Right) bool {
	switch right.Verb {
	case "create":
		return strings.Contains(right.Resource, "/")
	case "deletecollection":
		return false
	}
	return right.URL == ""
}
