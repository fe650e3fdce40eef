// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// mergeKeys are the fields that can identify elements of lists, best first. The schema of the list is not available
// here, but elements of nearly all lists have a name, and otherwise one of the other keys.
var mergeKeys = []string{
	"name", "type", "uid", "key", "ip", "containerPort", "port", "id", "mountPath", "devicePath", "topologyKey", "host", "path", "kind",
}

// compareLists compares lists of objects by the keys of their elements, and other lists as a whole.
func (c *Comparison) compareLists(a, b reflect.Value) {
	if a.Len() == 0 && b.Len() == 0 {
		return
	}
	element := a.Type().Elem()
	if element.Kind() == reflect.Uint8 {
		if string(a.Bytes()) != string(b.Bytes()) {
			c.add(a, b)
		}
		return
	}
	for element.Kind() == reflect.Pointer {
		element = element.Elem()
	}
	switch element.Kind() {
	case reflect.Struct:
		if plan := planFor(element); len(plan.keys) > 0 && c.compareKeyed(a, b, plan) {
			return
		}
		c.compareIndexed(a.Len(), b.Len(), func(i int) (x, y reflect.Value) { return at(a, i), at(b, i) })
	case reflect.Interface, reflect.Map, reflect.Slice:
		c.compareIndexed(a.Len(), b.Len(), func(i int) (x, y reflect.Value) { return at(a, i), at(b, i) })
	default:
		c.compareScalars(a, b)
	}
}

// compareScalars takes a list of plain values for one value.
func (c *Comparison) compareScalars(a, b reflect.Value) {
	c.left -= min(a.Len(), b.Len())
	if a.Len() != b.Len() {
		c.add(a, b)
		return
	}
	for i := range a.Len() {
		x, y := a.Index(i), b.Index(i)
		if x.Kind() == reflect.Pointer && !x.IsNil() && !y.IsNil() {
			x, y = x.Elem(), y.Elem()
		}
		if !sameLeaf(x, y) {
			c.add(a, b)
			return
		}
	}
}

// at is an element, or nothing beyond the end.
func at(list reflect.Value, index int) reflect.Value {
	if index >= list.Len() {
		return reflect.Value{}
	}
	return list.Index(index)
}

func (c *Comparison) compareIndexed(lengthA, lengthB int, at func(int) (a, b reflect.Value)) {
	for i := range max(lengthA, lengthB) {
		if c.left <= 0 {
			return
		}
		a, b := at(i)
		c.compareElement(Step{Kind: stepIndex, index: i}, a, b)
	}
}

func (c *Comparison) compareElement(which Step, a, b reflect.Value) {
	c.path = append(c.path, which)
	if a.IsValid() && b.IsValid() {
		c.compareValues(a, b)
	} else {
		c.left--
		c.add(a, b)
	}
	c.path = c.path[:len(c.path)-1]
}

// compareKeyed compares elements that have the same key. It does nothing if no key identifies all elements.
func (c *Comparison) compareKeyed(a, b reflect.Value, plan *plan) bool {
	// Lists are nested, so the keys of inner lists follow those of outer lists.
	used := len(c.keys)
	defer func() { c.keys = c.keys[:used] }()
	for _, key := range plan.keys {
		c.keys = c.keys[:used]
		inA, ok := c.byKey(a, key)
		if !ok {
			continue
		}
		inB, ok := c.byKey(b, key)
		if !ok {
			continue
		}
		for i := 0; i < len(inA) && c.left > 0; i++ {
			which := Step{Kind: StepElement, Key: key.name, Value: inA[i].value}
			c.compareElement(which, a.Index(inA[i].index), at(b, find(inB, inA[i].value, i)))
		}
		for i := 0; i < len(inB) && c.left > 0; i++ {
			if find(inA, inB[i].value, i) == missing {
				c.compareElement(Step{Kind: StepElement, Key: key.name, Value: inB[i].value}, reflect.Value{}, b.Index(inB[i].index))
			}
		}
		return true
	}
	return false
}

// keyed is an element of a list and its key.
type keyed struct {
	value string
	index int
}

// missing is beyond the end of any list.
const missing = int(^uint(0) >> 1)

// find looks where the element most likely is, and then everywhere.
func find(elements []keyed, value string, likely int) int {
	if likely < len(elements) && elements[likely].value == value {
		return elements[likely].index
	}
	for i := range elements {
		if elements[i].value == value {
			return elements[i].index
		}
	}
	return missing
}

// byKey returns the keys of all elements if they are unique. It skips lists that are too long.
func (c *Comparison) byKey(list reflect.Value, key planned) ([]keyed, bool) {
	const tooLong = 256
	if list.Len() > tooLong {
		return nil, false
	}
	first := len(c.keys)
	for i := range list.Len() {
		element := list.Index(i)
		for element.Kind() == reflect.Pointer {
			if element.IsNil() {
				return nil, false
			}
			element = element.Elem()
		}
		value := keyValue(element.Field(key.index))
		if value == "" || find(c.keys[first:], value, i) != missing {
			return nil, false
		}
		c.keys = append(c.keys, keyed{value: value, index: i})
	}
	return slices.Clip(c.keys[first:]), true
}

func keyValue(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	default:
		return ""
	}
}

// plan describes a struct type.
type plan struct {
	fields []planned
	// keys holds its fields that are mergeKeys, in their order.
	keys []planned
	// leaf is a struct that is not one in JSON, and raw the index of its field that holds JSON as such; -1 if there is none.
	leaf bool
	raw  int
	// plain is a struct of nothing but plain values.
	plain bool
}

var marshalerType = reflect.TypeFor[json.Marshaler]()

type planned struct {
	index  int
	name   string // in JSON
	inline bool
	// offset and shape are for looking at it in memory.
	offset uintptr
	shape  *shape
}

var plans sync.Map // *plan by reflect.Type

func planFor(t reflect.Type) *plan {
	if known, ok := plans.Load(t); ok {
		return known.(*plan)
	}
	p := &plan{raw: -1, leaf: t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType)}
	if raw, ok := t.FieldByName("Raw"); ok && p.leaf && raw.Type == reflect.TypeFor[[]byte]() && len(raw.Index) == 1 {
		p.raw = raw.Index[0]
	}
	p.plain = true
	for i := range t.NumField() {
		field := t.Field(i)
		p.plain = p.plain && (field.Type.Kind() < reflect.Array || field.Type.Kind() == reflect.String)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = field.Name
		}
		inline := strings.Contains(options, "inline") || field.Anonymous && field.Tag.Get("json") == ""
		p.fields = append(p.fields, planned{index: i, name: name, inline: inline, offset: field.Offset, shape: shapeOf(field.Type)})
	}
	for _, key := range mergeKeys {
		if i := slices.IndexFunc(p.fields, func(f planned) bool { return f.name == key && !f.inline }); i >= 0 {
			p.keys = append(p.keys, p.fields[i])
		}
	}
	known, _ := plans.LoadOrStore(t, p)
	return known.(*plan)
}
