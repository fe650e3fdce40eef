// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/opdock/opdock/internal/filewrite"
)

// ErrNoMarkers is returned if there are no markers to edit.
var ErrNoMarkers = errors.New("the project has no +kubebuilder:rbac markers to edit")

// ErrOnlyNamespaced is returned if a marker for the whole cluster would be the first one: the ClusterRole that is generated from it would
// need a binding, too.
var ErrOnlyNamespaced = errors.New("a right is needed in the whole cluster, and all +kubebuilder:rbac markers name a namespace")

// Edit is a marker that is replaced, removed or added.
type Edit struct {
	File string `json:"file"`
	// Line is the one of the marker, or the one that new markers follow.
	Line int `json:"line"`
	// Before is empty for new markers, and After for one that is removed.
	Before string   `json:"before,omitempty"`
	After  []string `json:"after,omitempty"`
}

// Plan holds the changes to markers that lead to the proposed rights.
type Plan struct {
	Edits []Edit
	// Changes are the same as whole files.
	Changes []filewrite.Change
}

// PlanEdits plans changes to markers of the project in dir. Elsewhere are rules that do not come from markers: what they grant
// needs none. A right stays in the whole cluster if it is there now, because a Role would also need a binding.
func PlanEdits(dir string, markers []Marker, grants []Grant, elsewhere []Rule) (*Plan, error) {
	plan := &Plan{}
	markers = slices.DeleteFunc(slices.Clone(markers), func(m Marker) bool { return m.Problem != nil })
	rules := slices.Clone(elsewhere)
	for i := range markers {
		m := &markers[i]
		left, same := m.reduce(grants)
		for _, rule := range left {
			rules = append(rules, Rule{PolicyRule: rule, Namespace: m.namespace()})
		}
		if same {
			continue
		}
		edit := Edit{File: m.File, Line: m.Line, Before: m.format(m.ToRule())}
		for _, rule := range left {
			edit.After = append(edit.After, m.format(rule))
		}
		plan.Edits = append(plan.Edits, edit)
	}
	added, err := addMarkers(markers, grants, rules)
	if err != nil {
		return nil, err
	}
	plan.Edits = append(plan.Edits, added...)
	plan.Changes, err = applyEdits(dir, markers, plan.Edits)
	return plan, err
}

func (m *Marker) format(rule rbacv1.PolicyRule) string {
	return formatMarker(rule, m.Namespace, m.RoleName)
}

// reduce returns what is left of a marker, as rules in the order of the marker, and whether that is all.
func (m *Marker) reduce(grants []Grant) (left []rbacv1.PolicyRule, same bool) {
	same = true
	rule := m.granted()
	for _, part := range rule.atoms() {
		wanted := slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool { return !m.meets(part, g) })
		if len(wanted) == 0 {
			same = false
			continue
		}
		if part.isWild() {
			same = false
		} else {
			wanted = []Grant{{Right: part.Right, Names: namesOf(wanted)}}
		}
		for _, g := range wanted {
			names := g.Names
			switch {
			case len(m.ResourceNames) > 0 && len(names) > 0:
				names = slices.DeleteFunc(slices.Clone(m.ResourceNames), func(name string) bool { return !slices.Contains(g.Names, name) })
				same = same && len(names) == len(m.ResourceNames)
			case len(m.ResourceNames) > 0:
				names = m.ResourceNames
			case len(names) > 0:
				same = false
			}
			left = addRight(left, g.Right, names)
		}
	}
	if same {
		return []rbacv1.PolicyRule{m.ToRule()}, true
	}
	for i := range left {
		// Parts of several wildcards may be the same right.
		slices.SortFunc(left[i].Verbs, compareVerbs)
		left[i].Verbs = slices.Compact(left[i].Verbs)
	}
	return joinResources(left), false
}

// meets reports whether a part of a marker is for a grant.
func (m *Marker) meets(part atom, g Grant) bool {
	return part.includes(g.Right) && (m.Namespace == "" || len(g.Namespaces) == 0 || slices.Contains(g.Namespaces, m.namespace())) &&
		(len(m.ResourceNames) == 0 || len(g.Names) == 0 || slices.ContainsFunc(g.Names, func(name string) bool { return slices.Contains(m.ResourceNames, name) }))
}

// namesOf are the names that grants of one right are limited to together.
func namesOf(grants []Grant) (names []string) {
	for _, g := range grants {
		if len(g.Names) == 0 {
			return nil
		}
		names = append(names, g.Names...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addMarkers adds markers for what no rule grants, beside the marker that is most like them.
func addMarkers(markers []Marker, grants []Grant, rules []Rule) (edits []Edit, err error) {
	var lacking []Grant
	for _, g := range NotIn(grants, rules) {
		g.Namespaces = lackedIn(markers, g, rules)
		lacking = append(lacking, g)
	}
	for _, role := range Propose(lacking) {
		for _, rule := range role.Rules {
			beside := closest(markers, rule, role.Namespace)
			if beside == nil {
				if len(markers) > 0 {
					return nil, ErrOnlyNamespaced
				}
				return nil, ErrNoMarkers
			}
			line := beside.format(rule)
			if i := slices.IndexFunc(edits, func(e Edit) bool { return e.File == beside.File && e.Line == beside.Line }); i >= 0 {
				edits[i].After = append(edits[i].After, line)
				continue
			}
			edits = append(edits, Edit{File: beside.File, Line: beside.Line, After: []string{line}})
		}
	}
	return edits, nil
}

// lackedIn are the namespaces in which a right is lacking; nil for the whole cluster. A namespace without markers has no Role that is
// bound, and without a binding, a Role would grant nothing.
func lackedIn(markers []Marker, g Grant, rules []Rule) (namespaces []string) {
	for _, namespace := range g.Namespaces {
		if !slices.ContainsFunc(markers, func(m Marker) bool { return m.namespace() == namespace }) {
			return nil
		}
		if len(NotIn([]Grant{{g.Right, []string{namespace}, g.Names}}, rules)) > 0 {
			namespaces = append(namespaces, namespace)
		}
	}
	return namespaces
}

func count(names []string) map[string]uint64 {
	counts := map[string]uint64{}
	for _, name := range names {
		counts[name] = 1
	}
	return counts
}

// closest is a marker about the same resource, or else the same group, or else the last one of the file with most markers. It is for
// the same namespace, or for the whole cluster if that is empty: what is beside another one would look as if it belonged there.
func closest(markers []Marker, rule rbacv1.PolicyRule, namespace string) *Marker {
	var byResource, byGroup, last *Marker
	inFile := map[string]int{}
	for i := range markers {
		m := &markers[i]
		if m.namespace() != namespace {
			continue
		}
		inFile[m.File]++
		sameGroup := len(rule.APIGroups) > 0 && slices.Contains(m.Groups, rule.APIGroups[0])
		if sameGroup {
			byGroup = m
		}
		if sameGroup && slices.ContainsFunc(m.Resources, func(resource string) bool {
			return baseOf(Right{Resource: resource}) == baseOf(Right{Resource: rule.Resources[0]})
		}) {
			byResource = m
		}
		if last == nil || inFile[m.File] >= inFile[last.File] {
			last = m
		}
	}
	for _, found := range []*Marker{byResource, byGroup, last} {
		if found != nil {
			return found
		}
	}
	return nil
}

// applyEdits returns the edited files.
func applyEdits(dir string, markers []Marker, edits []Edit) (changes []filewrite.Change, err error) {
	byFile := map[string][]Edit{}
	for _, edit := range edits {
		byFile[edit.File] = append(byFile[edit.File], edit)
	}
	for _, name := range slices.Sorted(maps.Keys(byFile)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		before, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("editing markers: %w", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("editing markers: %w", err)
		}
		after, err := editFile(before, name, markers, byFile[name])
		if err != nil {
			return nil, err
		}
		changes = append(changes, filewrite.Change{Path: name, Content: after, Before: before, Mode: info.Mode()})
	}
	return changes, nil
}

func editFile(before []byte, name string, markers []Marker, edits []Edit) ([]byte, error) {
	lines, ending := bytes.SplitAfter(before, []byte("\n")), "\n"
	asRead := slices.Clone(lines)
	if bytes.HasSuffix(lines[0], []byte("\r\n")) {
		ending = "\r\n"
	}
	for _, edit := range edits {
		i := slices.IndexFunc(markers, func(m Marker) bool { return m.File == name && m.Line == edit.Line })
		// The file was read before the operator was recorded, which takes minutes. Edits of an earlier marker may have replaced
		// the line here, so compare with the file.
		if i < 0 || edit.Line > len(asRead) || withoutEnd(asRead[edit.Line-1]) != markers[i].line {
			return nil, fmt.Errorf("editing markers: line %d of %s has changed since it was read; no file was changed, run the command again", edit.Line, name)
		}
		var text bytes.Buffer
		if edit.Before == "" {
			line := lines[edit.Line-1] // empty if its marker was removed
			text.Write(line)
			if len(line) > 0 && !bytes.HasSuffix(line, []byte("\n")) && len(edit.After) > 0 {
				text.WriteString(ending) // it was the last line
			}
		}
		for _, after := range edit.After {
			text.WriteString(markers[i].lead + after + ending)
		}
		lines[edit.Line-1] = text.Bytes()
	}
	after := bytes.Join(lines, nil)
	// A removed comment may leave two empty lines. Unformatted files stay unformatted.
	if formatted, err := format.Source(before); err == nil && bytes.Equal(formatted, before) {
		if formatted, err := format.Source(after); err == nil {
			return formatted, nil
		}
	}
	return after, nil
}

// Elsewhere are the rules that do not come from markers, and so stay when markers are edited.
func Elsewhere(rules []Rule, markers []Marker) (kept []Rule) {
	var asked []atom
	for i := range markers {
		if markers[i].Problem == nil {
			rule := markers[i].granted()
			asked = append(asked, rule.atoms()...)
		}
	}
	generated := map[string]bool{}
	for i := range rules {
		if _, seen := generated[rules[i].From]; !seen {
			generated[rules[i].From] = true
		}
		for _, part := range rules[i].atoms() {
			if !slices.ContainsFunc(asked, func(a atom) bool { return a.Right == part.Right }) {
				generated[rules[i].From] = false
			}
		}
	}
	for _, rule := range rules {
		if !generated[rule.From] && !strings.HasSuffix(rule.From, "manager-role") {
			kept = append(kept, rule)
		}
	}
	return kept
}

// NotIn returns the grants that rules do not cover.
func NotIn(grants []Grant, rules []Rule) []Grant {
	return slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool {
		return !slices.ContainsFunc(g.places(), func(at place) bool { return !covered(rules, g.Right, at) })
	})
}

// places are where a grant is proposed.
func (g *Grant) places() []place {
	return (&Evidence{Namespaces: count(g.Namespaces), Names: count(g.Names)}).places(g.Right)
}
