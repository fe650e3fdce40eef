// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package diff finds the fields that differ between two versions of an object.
package diff

import (
	"bytes"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Differ finds the fields that differ between two versions of an object. It compares Go values, because encoding
// objects as JSON would cost more than most reconciles.
type Differ struct {
	// MaxChanges is how many changes are shown, MaxValue how many bytes of a value, and MaxCompared how many values are
	// compared at the most.
	MaxChanges, MaxValue, MaxCompared int
}

// Comparison is the result of a Differ.
type Comparison struct {
	Differ
	// Changes are the first of the fields that differ, and Changed is how many there are.
	Changes []Change
	Changed int
	// Large holds the hashes of values in Changes that are shown shortened.
	Large []LargeChange
	// Given has a bit for each of the first changes that add something new. The others may be removals.
	Given uint64

	secret   bool
	path     []Step
	keys     []keyed  // of the lists that are being compared
	names    []string // of what differs in the maps that are being compared
	text     []byte   // what there is to show of the changes, one after the other
	found    []span   // the changes in it
	renderer renderer
	left     int       // of MaxCompared
	same     sameState //nolint:unused // same_unsafe.go uses it
	// probing is whether only the number of changes is of interest, and probed how many values were compared for that.
	probing bool
	probed  int
}

// Hidden replaces the values of Secrets, in JSON.
const Hidden = `"(hidden)"`

// scratch is what comparisons need on the way, and is kept for the next one.
type scratch struct {
	path  []Step
	keys  []keyed
	names []string
	text  []byte
	found []span
}

var scratches = sync.Pool{New: func() any {
	return &scratch{make([]Step, 0, 32), make([]keyed, 0, 32), make([]string, 0, 32), make([]byte, 0, 4096), make([]span, 0, 16)}
}}

// keep reuses the memory of a comparison, unless it has become large.
func (s *scratch) keep(c *Comparison) {
	const large = 32 << 10
	if cap(c.text) <= large {
		s.text = c.text[:0]
	}
	c.path, c.keys, c.names, c.text, c.found, c.renderer = nil, nil, nil, nil, nil, renderer{}
}

// Compare finds the first fields that differ, and how many there are. If an object is too large to compare all of it,
// the rest counts as one more change, without a path.
func (d Differ) Compare(old, now client.Object, secret bool) Comparison {
	buffer := scratches.Get().(*scratch)
	defer scratches.Put(buffer)
	c := Comparison{
		Differ: d, secret: secret, left: d.MaxCompared,
		path: buffer.path, keys: buffer.keys, names: buffer.names, text: buffer.text, found: buffer.found,
	}
	c.compareObjects(old, now)
	c.Changes = c.all()
	buffer.keep(&c)
	if c.left <= 0 {
		c.Changed++
	}
	return c
}

func (c *Comparison) compareObjects(old, now client.Object) {
	if a, ok := old.(*unstructured.Unstructured); ok {
		if b, ok := now.(*unstructured.Unstructured); ok {
			c.compareMaps(a.Object, b.Object)
			return
		}
	}
	a, b := reflect.ValueOf(old), reflect.ValueOf(now)
	if a.Type() == b.Type() && a.Kind() == reflect.Pointer {
		c.compareValues(a.Elem(), b.Elem())
	}
}

// ChangesContent reports whether something other than metadata and status changed. The generation counts such
// changes.
func (c *Comparison) ChangesContent() bool {
	return c.Changed > len(c.Changes) || slices.ContainsFunc(c.Changes, func(change Change) bool {
		return !IsWithin(change.Path, "metadata") && !IsWithin(change.Path, "status")
	})
}

// isNoise reports whether the field at the path changes with every write, or repeats the content of other fields.
func (c *Comparison) isNoise() bool {
	switch len(c.path) {
	case 2:
		if c.path[0].Name != "metadata" {
			return false
		}
		switch c.path[1].Name {
		case "managedFields", "resourceVersion", "generation", "selfLink":
			return true
		}
	case 3:
		return c.path[2].Name == "kubectl.kubernetes.io/last-applied-configuration" && c.path[1].Name == "annotations"
	}
	return false
}

var (
	timeType      = reflect.TypeFor[metav1.Time]()
	microTimeType = reflect.TypeFor[metav1.MicroTime]()
	quantityType  = reflect.TypeFor[resource.Quantity]()
)

// compareValues compares two values of one type.
func (c *Comparison) compareValues(a, b reflect.Value) {
	if c.left--; c.left < 0 {
		return
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		switch {
		case a.IsNil() && b.IsNil():
		case a.IsNil() || b.IsNil():
			c.add(a, b)
		case a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer():
		case a.Elem().Type() != b.Elem().Type():
			c.add(a, b)
		default:
			c.compareValues(a.Elem(), b.Elem())
		}
	case reflect.Struct:
		c.compareStructs(a, b)
	case reflect.Map:
		c.compareTypedMaps(a, b)
	case reflect.Slice, reflect.Array:
		c.compareLists(a, b)
	default:
		if !sameLeaf(a, b) {
			c.add(a, b)
		}
	}
}

// sameLeaf compares scalar values. Values that cannot be in an API object count as equal.
func sameLeaf(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.String:
		return a.String() == b.String()
	case reflect.Bool:
		return a.Bool() == b.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return a.Int() == b.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return a.Uint() == b.Uint()
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float()
	default:
		return true
	}
}

func (c *Comparison) compareStructs(a, b reflect.Value) {
	switch a.Type() {
	case timeType:
		if !pointerTo[metav1.Time](a).Equal(pointerTo[metav1.Time](b)) {
			c.add(a, b)
		}
		return
	case microTimeType:
		if !pointerTo[metav1.MicroTime](a).Equal(pointerTo[metav1.MicroTime](b)) {
			c.add(a, b)
		}
		return
	case quantityType:
		// A copy, because it may be changed by being compared.
		if quantity := *pointerTo[resource.Quantity](a); quantity.Cmp(*pointerTo[resource.Quantity](b)) != 0 {
			c.add(a, b)
		}
		return
	}
	plan := planFor(a.Type())
	switch {
	case plan.raw >= 0:
		c.compareRaw(a.Field(plan.raw).Bytes(), b.Field(plan.raw).Bytes())
		return
	case plan.leaf:
		if !sameStruct(a, b, plan) {
			c.add(a, b)
		}
		return
	}
	memory := memoryOf(a, b)
	for i := range plan.fields {
		field := &plan.fields[i]
		if c.isSame(field, memory) {
			continue
		}
		c.path = append(c.path, Step{Name: field.name})
		switch {
		case field.inline:
			c.path = c.path[:len(c.path)-1]
			c.compareValues(a.Field(field.index), b.Field(field.index))
			continue
		case !c.isNoise():
			c.compareValues(a.Field(field.index), b.Field(field.index))
		}
		c.path = c.path[:len(c.path)-1]
	}
}

// pointerTo returns a value without copying it, if it is not an element of a map.
func pointerTo[T any](v reflect.Value) *T {
	if v.CanAddr() {
		return v.Addr().Interface().(*T)
	}
	value := v.Interface().(T)
	return &value
}

func sameStruct(a, b reflect.Value, plan *plan) bool {
	if plan.plain || a.Comparable() && b.Comparable() {
		return a.Equal(b)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// compareRaw compares JSON that is kept as such.
func (c *Comparison) compareRaw(a, b []byte) {
	if bytes.Equal(a, b) {
		return
	}
	x, errX := decode(a)
	y, errY := decode(b)
	if errX != nil || errY != nil {
		c.add(reflect.ValueOf(string(a)), reflect.ValueOf(string(b)))
		return
	}
	c.compareAny(x, y)
}

// isConfidential reports whether the field of a Secret at the path may contain its data. Annotations may hold a copy.
func (c *Comparison) isConfidential() bool {
	switch len(c.path) {
	case 0:
		return true
	case 1:
		return c.path[0].Name != "type" && c.path[0].Name != "immutable"
	default:
		return c.path[0].Name != "metadata" || c.path[1].Name == "annotations"
	}
}

// gives reports whether there is a new value at the path. A number that is 0 may have been removed, a shorter list
// may have lost an element, and elements that are identified by index move up when an earlier one is removed.
func (c *Comparison) gives(a, b reflect.Value) bool {
	for b.IsValid() && (b.Kind() == reflect.Pointer || b.Kind() == reflect.Interface) {
		b = b.Elem()
	}
	if !b.IsValid() || b.IsZero() {
		return false
	}
	for i := range c.path {
		if c.path[i].Kind == stepIndex {
			return false
		}
	}
	isList := func(v reflect.Value) bool { return v.IsValid() && v.Kind() == reflect.Slice }
	return !isList(a) || !isList(b) || b.Len() >= a.Len()
}
