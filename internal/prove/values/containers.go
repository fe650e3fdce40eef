// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"maps"
	"slices"
	"strconv"
)

// mostElements is how many elements a list or a map is filled with to reach its limit. Larger ones test the machine
// rather than the operator.
const mostElements = 64

func (w *walker) visitList(s site) {
	items := itemsOf(s.schema)
	if items == nil {
		return
	}
	list, _ := s.value.([]any)
	more, guessed := w.oneMore(s.schema, items, s.name, list)
	// Objects are distinguished by their keys, and what else they hold is copied. Texts are made up, and may say anything
	// twice.
	plain := items.Type != "object" && len(items.Enum) == 0
	switch {
	case !s.present:
		w.add(s, groupOther, classOf(guessed), "adding a list of one", more...)
		w.limit(s, "an empty list", []any{})
		return
	case len(list) == 0:
		w.add(s, groupOther, classOf(guessed), "one more element", more...)
	default:
		w.add(s, groupOther, classOf(plain), "one more element", more...)
		if len(list) > 1 {
			w.valid(s, "one element fewer", list[:len(list)-1])
			w.valid(s, "without its first element", list[1:])
			w.limit(s, "in reverse order", reversed(list))
		}
		w.limit(s, "an empty list", []any{})
		// Two elements with the same key are refused; two equal elements of an atomic list are not.
		twice := append(slices.Clone(list), list[len(list)-1])
		if plain {
			w.limit(s, "the same element twice", twice)
		} else {
			w.misuse(s, "the same element twice", twice)
		}
	}
	if most := s.schema.MaxItems; most != nil && *most <= mostElements && *most > int64(len(list)) {
		if full := w.fill(s.schema, items, s.name, list, int(*most)); full != nil {
			w.limit(s, "as many elements as allowed", full)
		}
	}
	w.visitSome(s, list)
}

func reversed(list []any) []any {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// oneMore returns lists with one more element: the last element with other keys, or a new one.
func (w *walker) oneMore(list, items *props, name string, elements []any) (alternatives []any, guessed bool) {
	grow := func(element any) {
		alternatives = append(alternatives, append(slices.Clone(elements), element))
	}
	if len(elements) > 0 {
		last := elements[len(elements)-1]
		if len(list.XListMapKeys) > 0 {
			grow(w.sampler.vary(items, name, last, list.XListMapKeys, len(elements)+1))
		}
		grow(w.sampler.vary(items, name, last, append(slices.Clone(unique), list.XListMapKeys...), len(elements)+1))
	}
	samples, guessed := w.sampler.samples(items, name)
	for _, fresh := range samples {
		grow(fresh)
		if len(elements) > 0 {
			grow(w.sampler.vary(items, name, fresh, append(slices.Clone(unique), list.XListMapKeys...), len(elements)+1))
		}
	}
	return alternatives, guessed
}

// unique are fields that mostly have to differ between the elements of a list.
var unique = []string{"name", "port", "containerPort", "nodePort", "hostPort", "mountPath", "key", "host", "topologyKey"}

// fill returns a list of a length, or nil if its elements cannot be varied.
func (w *walker) fill(list, items *props, name string, elements []any, length int) []any {
	full := slices.Clone(elements)
	var base any
	if len(full) > 0 {
		base = full[len(full)-1]
	} else if base, _ = w.sampler.sample(items, name); base == nil {
		return nil
	}
	keys := append(slices.Clone(unique), list.XListMapKeys...)
	for len(full) < length {
		full = append(full, w.sampler.vary(items, name, base, keys, len(full)+1))
	}
	return full
}

func (w *walker) visitMap(s site) {
	schema := s.schema.AdditionalProperties.Schema
	entries, _ := s.value.(map[string]any)
	keys := slices.Sorted(maps.Keys(entries))
	value, guessed := w.sampler.sample(schema, s.name)
	if len(keys) > 0 {
		// What is there already shows best what such a map is for.
		value, guessed = w.sampler.vary(schema, s.name, entries[keys[0]], nil, 2), false
	}
	grown := func(count int) map[string]any {
		bigger := maps.Clone(entries)
		if bigger == nil {
			bigger = map[string]any{}
		}
		for at := 1; len(bigger) < count; at++ {
			bigger["example-"+strconv.Itoa(at)] = value
		}
		return bigger
	}
	// What the entries of a known type mean is known, and another one would not mean the same.
	if value != nil && !s.closed {
		w.add(s, groupOther, classOf(guessed), "one more entry", grown(len(keys)+1))
		if most := s.schema.MaxProperties; most != nil && *most <= mostElements && *most > int64(len(keys)) {
			w.limit(s, "as many entries as allowed", grown(int(*most)))
		}
	}
	w.limit(s, "an empty map", map[string]any{})
	if len(keys) > 1 {
		fewer := maps.Clone(entries)
		delete(fewer, keys[len(keys)-1])
		w.valid(s, "one entry fewer", fewer)
	}
	for at, key := range keys {
		if at == elements {
			return
		}
		w.visit(s.elementAt(key, schema, entries[key]))
	}
}
