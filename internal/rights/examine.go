// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// resourceRights are the verbs that a rule grants on one resource.
type resourceRights struct {
	group, resource, url string
	parts                []atom
}

// byResource gathers the parts of a rule.
func byResource(parts []atom) (gathered []*resourceRights) {
	for _, part := range parts {
		i := slices.IndexFunc(gathered, func(one *resourceRights) bool {
			return one.group == part.Group && one.resource == part.Resource && one.url == part.URL
		})
		if i < 0 {
			gathered = append(gathered, &resourceRights{group: part.Group, resource: part.Resource, url: part.URL})
			i = len(gathered) - 1
		}
		gathered[i].parts = append(gathered[i].parts, part)
	}
	return gathered
}

// examine finds unneeded rights of a rule.
func (c *comparison) examine(rule *Rule) {
	for _, one := range byResource(rule.atoms()) {
		var unused, kept, wild, wide, named []string
		var wildNeeds, wideNeeds, namedNeeds []*Need
		for _, part := range one.parts {
			needs, locks := c.usersOf(part), c.lockRights(part)
			manager := append(c.managers(part), locks...)
			if part.isUse() {
				manager = append(manager, part.Right)
			}
			switch {
			case len(needs) == 0 && len(manager) > 0:
				kept = append(kept, part.Verb)
				c.keep(rule, manager)
			case len(needs) == 0:
				unused = append(unused, part.Verb)
			case part.isWild():
				wild, wildNeeds = append(wild, part.Verb), append(wildNeeds, needs...)
				c.keep(rule, manager)
			default:
				c.keep(rule, locks)
				if rule.Namespace == "" && !slices.ContainsFunc(needs, func(n *Need) bool { return len(n.Namespaces) == 0 }) {
					wide, wideNeeds = append(wide, part.Verb), append(wideNeeds, needs...)
				}
				if len(rule.ResourceNames)+len(locks) == 0 && !slices.ContainsFunc(needs, func(n *Need) bool { return len(n.Names) == 0 }) {
					named, namedNeeds = append(named, part.Verb), append(namedNeeds, needs...)
				}
			}
		}
		c.find(Unused, rule, one, unused, c.whyUnused(one, unused), nil)
		c.find(Kept, rule, one, kept, c.whyKept(one), nil)
		c.find(Broader, rule, one, wild, "used only for "+summary(wildNeeds), wildNeeds)
		c.find(Broader, rule, one, wide, "the whole cluster, used only in namespace "+listOf(wideNeeds, func(n *Need) []string { return n.Namespaces }), wideNeeds)
		c.find(Broader, rule, one, named, "all names, used only for "+listOf(namedNeeds, func(n *Need) []string { return n.Names }), namedNeeds)
		c.unusedNames(rule, one)
	}
}

var impliedLast = []bool{false, true}

// find adds a finding about verbs, if there are any.
func (c *comparison) find(what FindingType, rule *Rule, one *resourceRights, verbs []string, message string, needs []*Need) {
	if len(verbs) == 0 {
		return
	}
	finding := Finding{
		Type: what, Group: one.group, Resource: one.resource, URL: one.url, Verbs: slices.SortedFunc(slices.Values(verbs), compareVerbs),
		From: rule.From, Namespace: rule.Namespace, Message: message,
	}
	slices.SortStableFunc(needs, func(x, y *Need) int {
		return slices.Index(impliedLast, x.Implied) - slices.Index(impliedLast, y.Implied)
	})
	for _, n := range needs {
		if n.Implied && finding.Evidence != nil {
			continue // the writes that imply it are counted already
		}
		if finding.Evidence == nil {
			finding.Evidence = &Evidence{}
		}
		finding.Evidence.add(&n.Evidence)
	}
	c.Findings = append(c.Findings, finding)
}

// usersOf are the needs that a part of a rule meets, at least at one place.
func (c *comparison) usersOf(part atom) (users []*Need) {
	for _, n := range c.Needs {
		if n.isFree {
			continue
		}
		if part.includes(n.Right) && n.isReachedBy(part.rule) {
			users = append(users, n)
		}
	}
	return users
}

// managers are the rights of parts of a manager that a part of a rule grants and that the recordings do not show there.
func (c *comparison) managers(part atom) (unseen []Right) {
	users := c.usersOf(part)
	for right := range managerRights {
		if part.includes(right) && !slices.ContainsFunc(users, func(n *Need) bool { return n.Right == right }) {
			unseen = append(unseen, right)
		}
	}
	slices.SortFunc(unseen, compareRights)
	return unseen
}

// keep proposes rights at the place where a rule grants them.
func (c *comparison) keep(rule *Rule, rights []Right) {
	for _, right := range rights {
		grant := Grant{Right: right, Names: rule.ResourceNames}
		if rule.Namespace != "" {
			grant.Namespaces = []string{rule.Namespace}
		}
		c.Grants = append(c.Grants, grant)
	}
}

func (c *comparison) whyKept(one *resourceRights) string {
	var parts []string
	for _, part := range one.parts {
		for _, right := range c.managers(part) {
			if why := managerRights[right].why(); !slices.Contains(parts, why) {
				parts = append(parts, why)
			}
		}
		if part.isUse() && !slices.Contains(parts, whyUse) {
			parts = append(parts, whyUse)
		}
		if len(c.lockRights(part)) > 0 && !slices.Contains(parts, whyUnseenLocks) {
			parts = append(parts, whyUnseenLocks)
		}
	}
	return sentence(parts)
}

// whyUnused explains what surprises most: a get that is not needed although the code calls Get.
func (c *comparison) whyUnused(one *resourceRights, verbs []string) string {
	cached := slices.ContainsFunc(c.Needs, func(n *Need) bool {
		return n.Verb == "watch" && n.Group == one.group && n.Resource == one.resource
	})
	if cached && slices.Contains(verbs, "get") {
		return "reads are answered from a cache, which needs list and watch, not get"
	}
	return ""
}

// unusedNames finds names that a rule is limited to and that were never used.
func (c *comparison) unusedNames(rule *Rule, one *resourceRights) {
	if len(rule.ResourceNames) == 0 {
		return
	}
	unused := slices.Clone(rule.ResourceNames)
	var verbs []string
	for _, part := range one.parts {
		if len(c.lockRights(part)) > 0 {
			return // one of them may be a lock
		}
		for _, n := range c.usersOf(part) {
			reach := n.reach()
			if reach.Many || n.escalates() {
				return // not all names are known
			}
			unused = slices.DeleteFunc(unused, func(granted string) bool {
				return slices.ContainsFunc(slices.Collect(maps.Keys(reach.Names)), func(name string) bool { return n.isFor(granted, name) })
			})
			verbs = append(verbs, part.Verb)
		}
	}
	if len(unused) == 0 || len(verbs) == 0 {
		return // all are used, or none of the verbs, which is already reported
	}
	slices.SortFunc(verbs, compareVerbs)
	c.Findings = append(c.Findings, Finding{
		Type: Unused, Group: one.group, Resource: one.resource, Verbs: slices.Compact(verbs), Names: unused, From: rule.From, Namespace: rule.Namespace,
	})
}

// summary describes needs: "get, list on configmaps; patch on deployments.apps".
func summary(needs []*Need) string {
	const most = 12
	var parts []string
	verbs := map[string][]string{}
	var order []string
	for _, n := range needs {
		what := n.Object()
		if verbs[what] == nil {
			order = append(order, what)
		}
		if !slices.Contains(verbs[what], n.Verb) {
			verbs[what] = append(verbs[what], n.Verb)
		}
	}
	for i, what := range order {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more resources", len(order)-most))
			break
		}
		slices.SortFunc(verbs[what], compareVerbs)
		parts = append(parts, strings.Join(verbs[what], ", ")+" on "+what)
	}
	return strings.Join(parts, "; ")
}

func listOf(needs []*Need, of func(*Need) []string) string {
	var all []string
	for _, n := range needs {
		all = append(all, of(n)...)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}
