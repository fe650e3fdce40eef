// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Server-side apply removes a list or an object when it removes the last field of it that a manager owns, and with it what admission
// has added and no manager owns. If that is all that is beside an unwanted field, all unwanted fields are removed by the request
// that takes over fields otherwise: they may refer to each other.

// removals returns the operations of a JSON patch that remove the unwanted fields; none if an apply can remove them.
func (p *Pass) removals(object client.Object, desired *desired, found drift) []map[string]any {
	if len(found.added) == 0 {
		return nil
	}
	unwanted, kept := &fieldpath.Set{}, p.shapes.fieldsOf(desired.content)
	if found.injected != nil {
		unwanted = found.injected
	}
	for _, other := range found.added {
		unwanted = unwanted.Union(other.fields)
	}
	content, owned := contentOf(object, desired), ownershipOf(object, appliedBy(p.fieldOwner, object))
	beside := p.shapes.fieldsOf(content).RecursiveDifference(unwanted)
	if owned.ours != nil {
		beside = beside.Difference(owned.ours)
	}
	for _, other := range owned.others {
		kept = kept.Union(other.fields.Difference(unwanted))
	}
	paths := topmost(unwanted)
	if !slices.ContainsFunc(paths, func(path fieldpath.Path) bool { return hasBelow(beside, goesWith(path, kept)) }) {
		return nil
	}
	var places []place
	for _, path := range paths {
		if found, ok := placeOf(content, path); ok {
			places = append(places, found)
		}
	}
	// To remove an item moves those after it, and what is in them.
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(b.depth, a.depth), cmp.Compare(b.index, a.index)) })
	operations := make([]map[string]any, 0, len(places))
	for _, one := range places {
		operations = append(operations, map[string]any{"op": "remove", "path": one.pointer})
	}
	return operations
}

// goesWith returns the topmost list or object that an apply removes along with a field, because nothing in it is kept. It returns the
// field itself if there is none.
func goesWith(path fieldpath.Path, kept *fieldpath.Set) fieldpath.Path {
	above := path
	for end := len(path) - 1; end > 0 && !kept.Has(path[:end]) && !hasBelow(kept, path[:end]); end-- {
		if path[end-1].FieldName != nil {
			above = path[:end]
		}
	}
	return above
}

// place is where a field is in an object: its JSON pointer, and for an item of a list its index.
type place struct {
	pointer      string
	depth, index int
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func placeOf(content any, path fieldpath.Path) (found place, ok bool) {
	for _, element := range path {
		found.depth++
		switch value := content.(type) {
		case map[string]any:
			if element.FieldName == nil || value[*element.FieldName] == nil {
				return place{}, false
			}
			found.pointer += "/" + pointerEscapes.Replace(*element.FieldName)
			content = value[*element.FieldName]
		case []any:
			found.index = slices.IndexFunc(value, func(item any) bool { return standsFor(element, item) })
			if found.index < 0 {
				return place{}, false
			}
			found.pointer += "/" + strconv.Itoa(found.index)
			content = value[found.index]
		default:
			return place{}, false
		}
	}
	return found, true
}
