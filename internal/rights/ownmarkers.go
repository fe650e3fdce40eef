// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// defaultRole is the role of markers that name none, unless a project chooses another name.
const defaultRole = "manager-role"

// OwnMarkers splits the markers of a module: a module may have several programs, and a marker that names a role is for the
// programs that this role is bound to. Roles are those that are bound to the operator. A marker that cannot be parsed is never
// edited, and counts as the operator's own.
func OwnMarkers(markers []Marker, roles Granted) (own, others []Marker) {
	named := map[string]bool{}
	unnamed := false
	for i := range markers {
		switch m := &markers[i]; {
		case m.Problem != nil:
		case m.RoleName == "":
			unnamed = true
		default:
			named[m.RoleName] = true
		}
	}
	bound := boundNames(named, roles.Bound)
	if len(roles.Bound) == 0 && !unnamed && len(named) == 1 {
		bound = named // no manifest says whose it is, and there is no other
	}
	if len(bound) == 0 || bound[defaultRole] || grantsUnnamed(markers, roles.Rules) {
		bound[""] = true
	}
	for _, m := range markers {
		if m.Problem != nil || bound[m.RoleName] {
			own = append(own, m)
		} else {
			others = append(others, m)
		}
	}
	return own, others
}

// Resettle finds out where markers hold. They name a namespace before kustomize sets another one, such as system in a project of
// kubebuilder. One that no manifest has is the operator's own.
func Resettle(markers []Marker, manifests []*unstructured.Unstructured, own string) {
	known := map[string]bool{"": true}
	for _, object := range manifests {
		known[object.GetNamespace()] = true
		if object.GetKind() == "Namespace" {
			known[object.GetName()] = true
		}
	}
	for i := range markers {
		if m := &markers[i]; !known[m.Namespace] {
			m.within = own
		}
	}
}

// boundNames are the names in markers whose roles are bound. Tools such as kustomize may have put a prefix or a suffix to the
// name of a role. If several names fit, the longest does: role is a part of other-role, too.
func boundNames(named map[string]bool, bound []string) map[string]bool {
	found := map[string]bool{}
	for _, role := range bound {
		longest := ""
		for _, name := range append(slices.Sorted(maps.Keys(named)), defaultRole) {
			if len(name) > len(longest) && hasPart(role, name) {
				longest = name
			}
		}
		if longest != "" {
			found[longest] = true
		}
	}
	return found
}

// hasPart reports whether a name consists of a part and perhaps a prefix and a suffix, which a dash, dot or colon sets off.
func hasPart(name, part string) bool {
	const separators = "-.:"
	for rest, offset := name, 0; ; {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		begin, end := offset+i, offset+i+len(part)
		if (begin == 0 || strings.ContainsRune(separators, rune(name[begin-1]))) && (end == len(name) || strings.ContainsRune(separators, rune(name[end]))) {
			return true
		}
		offset = begin + 1
		rest = name[offset:]
	}
}

// grantsUnnamed reports whether one of the roles is generated from the markers that name none, whatever it is called.
func grantsUnnamed(markers []Marker, rules []Rule) bool {
	asked := map[Right]bool{}
	for i := range markers {
		if m := &markers[i]; m.Problem == nil && m.RoleName == "" {
			rule := m.granted()
			for _, part := range rule.atoms() {
				asked[part.Right] = true
			}
		}
	}
	granted := map[string]map[Right]bool{}
	for i := range rules {
		from := rules[i].From
		if granted[from] == nil {
			granted[from] = map[Right]bool{}
		}
		for _, part := range rules[i].atoms() {
			granted[from][part.Right] = true
		}
	}
	return len(asked) > 0 && slices.ContainsFunc(slices.Collect(maps.Values(granted)), func(role map[Right]bool) bool { return maps.Equal(role, asked) })
}

// NotesOn are the notes on markers of other programs: one for each role.
func NotesOn(others []Marker) (notes []string) {
	count := map[string]int{}
	for i := range others {
		count[others[i].RoleName]++
	}
	for _, role := range slices.Sorted(maps.Keys(count)) {
		name := "for role " + role
		if role == "" {
			name = "without a role name"
		}
		many := "1 marker " + name + " does not count and stays as it is"
		if count[role] > 1 {
			many = fmt.Sprintf("%d markers %s do not count and stay as they are", count[role], name)
		}
		notes = append(notes, many+": the manifests do not bind that role to the account of the operator")
	}
	return notes
}
