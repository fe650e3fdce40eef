// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// drift holds the fields in which a child differs from its configuration. The zero value means no drift.
type drift struct {
	// lost are fields of the configuration that were changed or removed.
	lost *fieldpath.Set
	// added are fields that are not in the configuration, by the manager that set them.
	added []manager
	// injected are items of lists within which fields were added. Admission has created these items.
	injected *fieldpath.Set
	// released are items that an earlier correction has taken over and the server did not let it remove, and whose added fields are
	// gone since. They must not stay ours, or each apply would try to remove them.
	released *fieldpath.Set
	// unfinished means that an earlier correction has taken over added fields, but has not removed them.
	unfinished bool
	// moved are lists whose items were reordered. They are only looked for if nothing else differs.
	moved []fieldpath.Path
}

func (d drift) none() bool {
	return (d.lost == nil || d.lost.Empty()) && len(d.added) == 0 && len(d.moved) == 0
}

// drift determines whether the child differs from what we would create. If the child has the hash of the
// configuration and there is no drift, an apply would change nothing.
//
// It covers fields that any other writer changed, added or removed. It does not cover changes by the API server and
// admission, nor fields that other writers have a right to.
func (p *Pass) drift(live metav1.Object, desired *desired) drift {
	owned := ownershipOf(live, appliedBy(p.fieldOwner, live))
	if desired.isAppliedTo(live) && owned.ours != nil {
		all, moved := p.ownsAll(live, owned.ours, desired)
		if all && !slices.ContainsFunc(owned.others, func(m manager) bool { return !m.added(desired.kind, owned.ours).Empty() }) {
			if len(moved) > 0 && p.shapes.keepsOrder(live.GetUID(), desired.hash) {
				moved = nil
			}
			return drift{moved: moved}
		}
	}
	// Reading the configuration as the server does takes longer than the check before, which is nearly always enough.
	expected := p.shapes.fieldsOf(desired.content)
	found := drift{lost: expected}
	accepted := []*fieldpath.Set{expected}
	if owned.ours != nil {
		found.released = releasedItems(owned.ours, expected)
		owned.ours = owned.ours.Difference(found.released)
		found.lost = expected.Difference(owned.ours)
		if desired.isAppliedTo(live) {
			// Defaults that the server set for us and that other managers also own. If our configuration changes, their
			// ownership may be in the way.
			accepted = append(accepted, owned.ours)
			found.unfinished = found.lost.Has(hashPath) && writersOf(live, appliedBy(p.fieldOwner, live), hashPath) == ""
		}
	}
	for _, other := range owned.others {
		if fields := other.added(desired.kind, accepted...); !fields.Empty() {
			found.added = append(found.added, manager{other.name, other.subresource, fields})
		}
	}
	found.injected = owned.injectedItems(expected, found.added)
	return found
}

// ownsAll reports whether all fields of a configuration are in the set, and if so, which of its lists have another order in
// the child.
func (p *Pass) ownsAll(live metav1.Object, owned *fieldpath.Set, desired *desired) (all bool, moved []fieldpath.Path) {
	w := walk{shapes: p.shapes, desired: desired, live: reflect.ValueOf(live)}
	for name, value := range desired.content {
		if name == "metadata" {
			value = withoutIdentity(value)
		}
		if name != "apiVersion" && name != "kind" && !w.owns(owned, fieldpath.Path{}, fieldElement(name), value) {
			return false, nil
		}
	}
	slices.SortFunc(w.moved, func(a, b fieldpath.Path) int { return cmp.Compare(a.String(), b.String()) })
	return true, w.moved
}

func withoutIdentity(metadata any) map[string]any {
	kept := map[string]any{}
	content, _ := metadata.(map[string]any)
	for name, value := range content {
		if name != "name" && name != "namespace" && name != "uid" {
			kept[name] = value
		}
	}
	return kept
}

func fieldElement(name string) fieldpath.PathElement { return fieldpath.PathElement{FieldName: &name} }

// walk compares a configuration with a set of fields.
type walk struct {
	shapes  *shapes
	desired *desired
	// live is the child, and moved holds its lists that have another order.
	live  reflect.Value
	moved []fieldpath.Path
}

// owns reports whether the set contains the element, or everything that the value has below it.
func (w *walk) owns(owned *fieldpath.Set, parent fieldpath.Path, element fieldpath.PathElement, value any) bool {
	if value == nil {
		// A field that must not be there, which no manager can own.
		return true
	}
	path := append(slices.Clip(parent), element)
	below, has := owned.Children.Get(element)
	if !has {
		// Either an atomic value, or a list or map of which only the empty shell is left: its parts were changed or
		// removed.
		return owned.Members.Has(element) && (!hasParts(value) || !w.shapes.isGranular(w.desired.kind, path, w.desired.content))
	}
	switch value := value.(type) {
	case map[string]any:
		for name, part := range value {
			if !w.owns(below, path, fieldElement(name), part) {
				return false
			}
		}
		return true
	case []any:
		var named []fieldpath.PathElement
		for _, item := range value {
			element, found := elementOf(below, item)
			if !found || !w.owns(below, path, element, item) {
				return false
			}
			if element.Key != nil && len(value) > 1 {
				named = append(named, element)
			}
		}
		if len(named) > 1 && !w.inOrder(path, named) {
			w.moved = append(w.moved, path)
		}
		return true
	default:
		return false
	}
}

func hasParts(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) > 0
	case []any:
		return len(value) > 0
	default:
		return false
	}
}

// elementOf returns the path element of a list item: by its keys if it is an object, by its value otherwise.
func elementOf(items *fieldpath.Set, item any) (found fieldpath.PathElement, ok bool) {
	look := func(element fieldpath.PathElement) {
		if !ok && standsFor(element, item) {
			found, ok = element, true
		}
	}
	items.Children.Iterate(look)
	items.Members.Iterate(look)
	return found, ok
}

// defaultKeys holds the values of keys that the server fills in: the protocol of ports, and the host and path of an AppService's
// rules.
var defaultKeys = map[string]string{"protocol": "TCP", "host": "", "path": "/"}

func standsFor(element fieldpath.PathElement, item any) bool {
	object, isObject := item.(map[string]any)
	if !isObject {
		return element.Value != nil && fmt.Sprint((*element.Value).Unstructured()) == fmt.Sprint(item)
	}
	if element.Key == nil {
		return false
	}
	for _, key := range *element.Key {
		value, has := object[key.Name]
		if !has {
			value = defaultKeys[key.Name]
		}
		if fmt.Sprint(value) != fmt.Sprint(key.Value.Unstructured()) {
			return false
		}
	}
	return true
}

// maxDescribed is how many fields of a child are named when it is corrected.
const maxDescribed = 6

// describe names the fields that differ and the managers that set them, for an event. The object must come from the
// server, because caches keep less of managed fields.
func (d drift) describe(live metav1.Object, owner string) string {
	var parts []string
	lost := d.lost
	if d.unfinished {
		lost = lost.Difference(appliedHash) // we gave it up ourselves
		parts = append(parts, "fields were added, and an earlier correction was interrupted")
	}
	if lost != nil {
		for _, path := range topmost(lost) {
			parts = append(parts, describeLost(live, owner, path))
		}
	}
	for _, other := range d.added {
		for _, path := range topmost(other.fields) {
			parts = append(parts, fmt.Sprintf("%s was added by %s", fieldText(path), other.name))
		}
	}
	for _, path := range d.moved {
		parts = append(parts, fieldText(path)+" was reordered")
	}
	if more := len(parts) - maxDescribed; more > 0 {
		parts = append(parts[:maxDescribed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func describeLost(live metav1.Object, owner string, path fieldpath.Path) string {
	by := writersOf(live, appliedBy(owner, live), path)
	if by == "" {
		return fieldText(path) + " was removed"
	}
	return fmt.Sprintf("%s was changed by %s", fieldText(path), by)
}

// writersOf names the other managers of a field; empty if there are none.
func writersOf(live metav1.Object, isOurs func(*metav1.ManagedFieldsEntry) bool, path fieldpath.Path) string {
	var managers []string
	for _, entry := range live.GetManagedFields() {
		fields := fieldsOf(&entry)
		if fields != nil && !isOurs(&entry) && entry.Subresource != "status" && (fields.Has(path) || hasBelow(fields, path)) {
			managers = append(managers, entry.Manager)
		}
	}
	slices.Sort(managers)
	return strings.Join(slices.Compact(managers), " and ")
}

func hasBelow(fields *fieldpath.Set, path fieldpath.Path) bool {
	for _, element := range path {
		below, has := fields.Children.Get(element)
		if !has {
			return false
		}
		fields = below
	}
	return true
}

// topmost returns the paths of a set without paths below another one, sorted by name.
func topmost(fields *fieldpath.Set) (paths []fieldpath.Path) {
	for path := range fields.All() {
		if !slices.ContainsFunc(paths, func(above fieldpath.Path) bool { return len(above) < len(path) && above.Equals(path[:len(above)]) }) {
			paths = append(paths, slices.Clone(path))
		}
	}
	slices.SortFunc(paths, func(a, b fieldpath.Path) int { return cmp.Compare(a.String(), b.String()) })
	return paths
}

// fieldText writes a path for people.
func fieldText(path fieldpath.Path) string { return strings.TrimPrefix(path.String(), ".") }

// signature identifies a drift: the same fields, set by the same managers.
func (d drift) signature() string {
	var text strings.Builder
	if d.lost != nil {
		for _, path := range topmost(d.lost) {
			text.WriteString(path.String() + "\n")
		}
	}
	for _, other := range d.added {
		for _, path := range topmost(other.fields) {
			text.WriteString(other.name + " " + path.String() + "\n")
		}
	}
	for _, path := range d.moved {
		text.WriteString(path.String() + "\n")
	}
	return text.String()
}

// values stands for the values that the fields have which differ.
func (d drift) values(live any) string {
	sum := sha256.New()
	write := func(fields *fieldpath.Set) {
		for _, path := range topmost(fields) {
			var data []byte
			if value := valueAt(reflect.ValueOf(live), path); value.IsValid() && value.CanInterface() {
				data, _ = json.Marshal(value.Interface())
			}
			fmt.Fprintf(sum, "%s=%s\n", path, data)
		}
	}
	if d.lost != nil {
		write(d.lost)
	}
	for _, other := range d.added {
		write(other.fields)
	}
	return string(sum.Sum(nil))
}
