// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
)

// Granted holds the rules that a project grants to its operator.
type Granted struct {
	// Source is where the rules come from; empty if no rules are known.
	Source string
	Rules  []Rule
	// Bound are the names of the roles that manifests bind to the operator, even if their rules are not known.
	Bound []string
	// Notes name what could not be read.
	Notes []string
	// Assumed is the namespace of rules that hold where the operator runs, if that was not known when they were read.
	Assumed string
}

// in returns the rules for an operator that runs in a namespace.
func (g *Granted) in(own string) []Rule {
	rules := slices.Clone(g.Rules)
	for i := range rules {
		if g.Assumed != "" && rules[i].Namespace == g.Assumed {
			rules[i].Namespace = own
		}
	}
	return rules
}

// Options holds facts about an operator that are not in its recordings.
type Options struct {
	// Namespace is where the operator runs; by default the namespace of its service account in the recordings.
	Namespace string
	// ClusterScoped reports which custom resources are cluster-scoped.
	ClusterScoped map[schema.GroupResource]bool
	// IncludeRefused proposes rights although all requests for them were refused.
	IncludeRefused bool
}

// FindingType is how the granted rights differ from the needed ones.
type FindingType string

// The types of findings.
const (
	// Missing is a right that is needed and not granted.
	Missing FindingType = "missing"
	// Refused is one for which all requests were refused, so only the operator's author can say whether it is needed.
	Refused FindingType = "refused"
	// Unused is a right that is granted and that no request in the recordings needed.
	Unused FindingType = "unused"
	// Broader is a right that grants more than was used.
	Broader FindingType = "broader"
	// Kept is an unused right of a part of a manager that recordings seldom show. It stays in the proposal.
	Kept FindingType = "kept"
)

// Finding is a difference between granted and needed rights.
type Finding struct {
	Type     FindingType `json:"type"`
	Group    string      `json:"group"`
	Resource string      `json:"resource,omitempty"`
	URL      string      `json:"url,omitempty"`
	Verbs    []string    `json:"verbs"`
	// Names are those that are granted and unused, if only some are.
	Names []string `json:"names,omitempty"`
	// From is the role or marker that grants it, and Namespace where it does; empty for the whole cluster.
	From      string `json:"from,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Markers are the lines of source code that request it.
	Markers []string `json:"markers,omitempty"`
	// Message is the reason, or what would be enough.
	Message  string    `json:"message,omitempty"`
	Evidence *Evidence `json:"evidence,omitempty"`
}

// Source is a recording that a report is based on.
type Source struct {
	Name     string    `json:"name"`
	Began    time.Time `json:"began"`
	Identity string    `json:"identity,omitempty"`
	Requests uint64    `json:"requests"`
	Cut      bool      `json:"cut,omitempty"`
}

// Report holds the needs of an operator, and how they differ from its granted rights.
type Report struct {
	Recordings []Source `json:"recordings"`
	Identity   string   `json:"identity,omitempty"`
	// Granted is the source that the findings compare with; empty if no rights were found.
	Granted  string    `json:"granted,omitempty"`
	Needs    []*Need   `json:"needs"`
	Findings []Finding `json:"findings"`
	// Grants are the proposal, one right at a time, and Proposal is the same as roles.
	Grants   []Grant  `json:"-"`
	Proposal []Role   `json:"proposal"`
	Notes    []string `json:"notes,omitempty"`
}

// Count is how many findings of some types there are.
func (r *Report) Count(types ...FindingType) (count int) {
	for i := range r.Findings {
		if slices.Contains(types, r.Findings[i].Type) {
			count++
		}
	}
	return count
}

// Rights is how many rights are proposed. A right that two roles grant, or that is needed at two places, is one.
func (r *Report) Rights() int {
	different := map[Right]bool{}
	for i := range r.Grants {
		different[r.Grants[i].Right] = true
	}
	return len(different)
}

// Grant is a proposed right: in the whole cluster if it names no namespaces, and on all objects if it has no names.
type Grant struct {
	Right
	Namespaces []string
	Names      []string
}

// comparison is a report in the making.
type comparison struct {
	*Report
	rules []Rule
	// ungranted means that the granted rights are unknown.
	ungranted bool
	// elected means that the recordings show a leader election.
	elected bool
}

// Compare compares the observed requests with the granted rights.
func Compare(o *Observed, granted Granted, options Options) *Report {
	c := &comparison{ungranted: granted.Source == ""}
	c.Report = &Report{Identity: o.Identity, Granted: granted.Source, Findings: []Finding{}, Notes: slices.Clone(granted.Notes)}
	for _, r := range o.Recordings {
		source := Source{Name: r.Name, Began: r.Header.Began, Identity: r.Header.Identity, Cut: r.Cut}
		for _, used := range r.Totals.Uses {
			if used.Implied == "" {
				source.Requests += used.Count
			}
		}
		c.Recordings = append(c.Recordings, source)
	}
	own := options.Namespace
	if own == "" {
		own, _, _ = lens.ServiceAccount(o.Identity)
	}
	own = cmp.Or(own, granted.Assumed)
	c.rules = granted.in(own)
	s := newScopes(o, own, options)
	s.escalates = c.escalates(o, s)
	s.binds = c.ungranted || !slices.ContainsFunc(o.needs(s), c.lacksBind)
	s.collect()
	c.Needs = o.needs(s)
	c.elected = len(o.facts.locks) > 0 || slices.ContainsFunc(c.Needs, func(n *Need) bool { return n.Part == LeaderElection && !n.Refused && !n.GivenAway })
	for _, n := range c.Needs {
		c.weigh(n, s, options)
	}
	if !c.ungranted {
		for i := range c.rules {
			c.examine(&c.rules[i])
		}
	}
	c.sort()
	c.Proposal = Propose(c.Grants)
	c.remark(o, s)
	if c.Count(Refused) > 0 && !options.IncludeRefused {
		c.Notes = append(c.Notes, "rights whose requests were all refused are proposed only with --include-refused")
	}
	return c.Report
}

// weigh decides about a need.
func (c *comparison) weigh(n *Need, s *scopes, options Options) {
	n.Granted = c.grants(n)
	n.Proposed = !n.Refused || n.Granted || options.IncludeRefused
	switch {
	case n.GivenAway:
		n.Proposed = n.Proposed && !n.isFree
	case c.hasAllRights(n):
		n.Proposed = s.escalates
	case n.Alternative:
		n.Proposed = n.Proposed && (n.Granted || c.ungranted || n.mustBind)
	}
	if n.Proposed {
		grants := c.proposalFor(n)
		n.Proposed = len(grants) > 0
		c.Grants = append(c.Grants, grants...)
	}
	if n.Granted || c.ungranted || n.Alternative || n.isFree {
		return
	}
	finding := Finding{Type: Missing, Group: n.Group, Resource: n.Resource, URL: n.URL, Verbs: []string{n.Verb}, Message: sentence(n.Why), Evidence: &n.Evidence}
	if n.Refused {
		finding.Type = Refused
	}
	c.Findings = append(c.Findings, finding)
}

// proposalFor is what is proposed for a need: no more than the rules grant that meet it, so that comparing never widens a right.
func (c *comparison) proposalFor(n *Need) (grants []Grant) {
	proposed := Grant{n.Right, n.Namespaces, n.Names}
	if c.ungranted || !n.Granted && !n.escalates() || covered(c.rules, n.Right, place{}) {
		return []Grant{proposed}
	}
	for i := range c.rules {
		rule := &c.rules[i]
		if !slices.ContainsFunc(rule.atoms(), func(part atom) bool { return part.includes(n.Right) }) || !n.isReachedBy(rule) {
			continue
		}
		limited := proposed
		if rule.Namespace != "" {
			limited.Namespaces = []string{rule.Namespace}
		}
		if len(rule.ResourceNames) > 0 {
			limited.Names = slices.DeleteFunc(slices.Clone(rule.ResourceNames), func(granted string) bool {
				return len(n.Names) > 0 && !slices.ContainsFunc(n.Names, func(name string) bool { return n.isFor(granted, name) })
			})
		}
		grants = append(grants, limited)
	}
	n.Namespaces, n.Names = namespacesOf(grants), namesOf(grants)
	return grants
}

// namespacesOf are the namespaces that grants are limited to together.
func namespacesOf(grants []Grant) (namespaces []string) {
	for _, g := range grants {
		if len(g.Namespaces) == 0 {
			return nil
		}
		namespaces = append(namespaces, g.Namespaces...)
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces)
}

// escalates reports whether rules name the verb escalate for all roles that the operator writes.
func (c *comparison) escalates(o *Observed, s *scopes) bool {
	var rules []Rule
	for _, rule := range c.rules {
		if slices.Contains(rule.Verbs, "escalate") {
			rules = append(rules, rule.forAllNames())
		}
	}
	return len(rules) > 0 && !slices.ContainsFunc(o.uses, func(used *use) bool {
		if !used.escalates() || s.onlyRefused(&used.Evidence) {
			return false
		}
		evidence := s.normal(used)
		return slices.ContainsFunc(evidence.places(used.Right), func(at place) bool { return !covered(rules, used.Right, at) })
	})
}

// lacksBind reports whether a need is the right to bind roles, and is neither granted nor proposed.
func (c *comparison) lacksBind(n *Need) bool {
	return n.Verb == "bind" && n.Alternative && !n.mustBind && !c.grants(n)
}

// grants reports whether a right is granted wherever it was used. What is granted in the whole cluster and for all names is
// granted at all places.
func (c *comparison) grants(n *Need) bool {
	return !c.ungranted && (covered(c.rules, n.Right, place{}) ||
		!slices.ContainsFunc(n.places(), func(at place) bool { return !covered(c.rules, n.Right, at) }))
}

// hasAllRights reports whether a need is the right to write roles that grant more than their writer has, and the rights that these
// roles grant are among the needs: one of the two is enough.
func (c *comparison) hasAllRights(n *Need) bool {
	return n.Alternative && n.Verb == "escalate" && !n.unlisted &&
		slices.ContainsFunc(c.Needs, func(n *Need) bool { return slices.Contains(n.Why, lens.GivenAway) })
}

func sentence(parts []string) string { return strings.Join(parts, "; ") }

var typeOrder = []FindingType{Missing, Refused, Unused, Broader, Kept}

func (c *comparison) sort() {
	slices.SortStableFunc(c.Findings, func(a, b Finding) int {
		if a.Type != b.Type {
			return slices.Index(typeOrder, a.Type) - slices.Index(typeOrder, b.Type)
		}
		return compareRights(Right{a.Verbs[0], a.Group, a.Resource, a.URL}, Right{b.Verbs[0], b.Group, b.Resource, b.URL})
	})
}

// remark adds notes for the reader.
func (c *comparison) remark(o *Observed, s *scopes) {
	note := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	if o.Lost > 0 {
		note("%d events are missing in these recordings: rights that only they used look unused, and as not all objects that were reconciled are known, "+
			"rights are limited neither to names nor to namespaces that the operator does not watch", o.Lost)
	}
	for _, r := range o.Recordings {
		if r.Cut {
			note("recording %s has no end: the session still runs, or was killed; what follows is not counted", r.Name)
		}
		if r.Missing > 0 {
			note("recording %s lacks %d of its events: not all objects that were reconciled are known, so rights are limited neither to names nor to "+
				"namespaces that the operator does not watch", r.Name, r.Missing)
		}
	}
	for _, n := range c.Needs {
		elsewhere := uint64(0)
		for _, namespace := range slices.Sorted(maps.Keys(n.Evidence.elsewhere)) {
			where, refused := "in all namespaces", n.Evidence.elsewhere[namespace]
			if namespace != "" {
				where = "in namespace " + namespace
			}
			elsewhere += refused
			note("%s on %s %s is not proposed: %s refused there", n.Verb, n.Object(), where, were(refused))
		}
		if n.Granted && n.Evidence.Refused > elsewhere && !n.GivenAway { // a role that was refused grants some rights that its writer has
			note("%s on %s is granted, but %s refused: the role has changed since, or the check against escalation is the reason",
				n.Verb, n.Object(), were(n.Evidence.Refused-elsewhere))
		}
	}
	if o.asOthers > 0 {
		note("%s sent as another user: the rights of that user are not part of the proposal, only the right to impersonate it or to request its token", were(o.asOthers))
	}
	for _, n := range c.Needs {
		if n.Proposed && n.mayBindOthers {
			note("bind on %s is limited to %s: the roles of other custom resources have other names, which must be added, or the right must be left without names",
				n.Object(), strings.Join(n.Names, ", "))
		}
	}
	c.remarkRoles(note)
	if s.everywhere != nil && !c.ungranted {
		c.remarkScope(s, note)
	}
}

// remarkRoles explains what an operator that writes roles or bindings needs.
func (c *comparison) remarkRoles(note func(string, ...any)) {
	var writes, escalates, unknown bool
	for _, n := range c.Needs {
		if !n.Alternative || c.hasAllRights(n) {
			continue
		}
		writes, escalates = true, escalates || n.Verb == "escalate"
		if n.unlisted {
			note("the operator writes %s that grant more rights than a recording lists: it needs all of them, unless it may escalate", n.Object())
		}
		switch {
		case c.ungranted || n.Granted:
		case n.mustBind && !slices.Contains(n.Why, lens.BindsUnknown):
			note("bind on %s is proposed for %s: the operator writes these itself, and with escalate it need not have what they grant. It is not needed if it does",
				n.Object(), cmp.Or(strings.Join(n.Names, ", "), "all names"))
		case n.mustBind:
			note("bind on %s is proposed for %s: the recordings do not show what all of these grant. It is not needed if the operator has all rights that it binds",
				n.Object(), cmp.Or(strings.Join(n.Names, ", "), "all names"))
		case n.Verb != "bind" || !slices.ContainsFunc(c.Needs, func(n *Need) bool { return n.bound }):
			unknown = true
		}
	}
	switch {
	case writes && c.ungranted && !escalates:
		note("the operator writes bindings: bind is proposed, and is not needed if it has all rights that it grants")
	case writes && c.ungranted:
		note("the operator writes roles or bindings: escalate and bind are proposed, and are not needed if it has all rights that it grants")
	case unknown:
		note("the operator writes roles or bindings without escalate or bind: it needs every right that it grants, even if that right looks unused here")
	}
}

func were(count uint64) string {
	if count == 1 {
		return "1 request was"
	}
	return fmt.Sprintf("%d requests were", count)
}

// remarkScope explains why no Role is proposed where all writes were in few namespaces.
func (c *comparison) remarkScope(s *scopes, note func(string, ...any)) {
	const few = 1
	namespaces := map[string]bool{}
	for _, n := range c.Needs {
		for namespace := range n.Evidence.Namespaces {
			namespaces[namespace] = true
		}
	}
	delete(namespaces, s.own)
	if len(namespaces) != few {
		return
	}
	for namespace := range namespaces {
		note("all requests for objects outside of the operator's own namespace were in namespace %s, but it lists or watches %s in all namespaces: "+
			"no Role is proposed for them unless the cache of the operator is limited to namespaces", namespace, (Right{Group: s.everywhere.Group, Resource: s.everywhere.Resource}).Object())
	}
}
