// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build opdock_unsafe

package diff

import (
	"reflect"
	"sync"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
)

// shape describes the memory layout of a type. Nearly all of an object is equal in two
// versions, and finding that out by reflection takes most of the time of a comparison. So
// memory is compared first: parts that are certainly equal are skipped, and only the rest is
// compared by meaning.
type shape struct {
	look look
	// size is the size of plain memory, or of a list element.
	size    uintptr
	element *shape // of pointers and lists
	parts   []part // of structs
}

// part is a field of a struct, or of a nested struct. It holds what most fields need, so their
// shapes are not read.
type part struct {
	offset uintptr
	look   look
	size   uintptr
	shape  *shape
}

// look is how two values of a shape are compared.
type look uint8

const (
	lookNever     look = iota // unknown
	lookPlain                 // memory without pointers, or where different pointers mean different values
	lookText                  // a string
	lookPointer               // a pointer
	lookList                  // a slice
	lookStruct                // a struct
	lookTexts                 // a map from strings to strings
	lookResources             // a corev1.ResourceList
	lookAbsent                // an interface or a map, which is the same for sure only if there is none
)

var shapes = struct {
	sync.Mutex
	known map[reflect.Type]*shape
}{known: map[reflect.Type]*shape{}}

func shapeOf(t reflect.Type) *shape {
	shapes.Lock()
	defer shapes.Unlock()
	return shapeWithin(t)
}

// shapeWithin needs the lock. A type that is part of itself finds the shape that is being made.
func shapeWithin(t reflect.Type) *shape {
	if known, ok := shapes.known[t]; ok {
		return known
	}
	s := &shape{}
	shapes.known[t] = s
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Time]() || isPlain(kind):
		s.look, s.size = lookPlain, t.Size()
	case kind == reflect.String:
		s.look = lookText
	case kind == reflect.Pointer:
		s.look, s.element = lookPointer, shapeWithin(t.Elem())
	case kind == reflect.Slice:
		s.look, s.element, s.size = lookList, shapeWithin(t.Elem()), t.Elem().Size()
	case kind == reflect.Struct:
		s.look, s.parts = lookStruct, partsOf(t)
	case t == reflect.TypeFor[corev1.ResourceList]():
		s.look = lookResources
	case kind == reflect.Map && t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.String:
		s.look = lookTexts
	case kind == reflect.Map || kind == reflect.Interface:
		s.look = lookAbsent
	}
	return s
}

func isPlain(kind reflect.Kind) bool { return kind >= reflect.Bool && kind <= reflect.Complex128 }

// partsOf returns the fields of a struct, with nested structs flattened. Adjacent plain memory
// is one part.
func partsOf(t reflect.Type) (parts []part) {
	for i := range t.NumField() {
		field := t.Field(i)
		of := shapeWithin(field.Type)
		if of.look == lookStruct {
			for _, inner := range of.parts {
				inner.offset += field.Offset
				parts = append(parts, inner)
			}
			continue
		}
		if of.look == lookPlain && len(parts) > 0 {
			if last := &parts[len(parts)-1]; last.look == lookPlain && last.offset+last.size == field.Offset {
				last.size += of.size
				continue
			}
		}
		parts = append(parts, part{field.Offset, of.look, of.size, of})
	}
	return parts
}

// isSame reports whether two values are certainly equal. It uses up the budget of values to
// compare; beyond it, equality is unknown.
func (s *shape) isSame(a, b unsafe.Pointer, budget *int) bool {
	if *budget--; *budget < 0 {
		return false
	}
	switch s.look {
	case lookPlain:
		return samePlain(a, b, s.size)
	case lookText:
		return *(*string)(a) == *(*string)(b)
	case lookPointer:
		x, y := *(*unsafe.Pointer)(a), *(*unsafe.Pointer)(b)
		return x == y || x != nil && y != nil && s.element.isSame(x, y, budget)
	case lookList:
		return s.sameList((*list)(a), (*list)(b), budget)
	case lookStruct:
		return s.sameParts(a, b, budget)
	case lookTexts:
		return sameTexts(*(*map[string]string)(a), *(*map[string]string)(b), budget)
	case lookResources:
		x, y := *(*corev1.ResourceList)(a), *(*corev1.ResourceList)(b)
		*budget -= len(x)
		return *budget >= 0 && sameResources(x, y)
	case lookAbsent:
		// The first word of both is nil only if there is none.
		return *(*unsafe.Pointer)(a) == nil && *(*unsafe.Pointer)(b) == nil
	case lookNever:
	}
	return false
}

// sameParts passes over what most parts are: not there.
func (s *shape) sameParts(a, b unsafe.Pointer, budget *int) bool {
	*budget -= len(s.parts)
	for i := range s.parts {
		p := &s.parts[i]
		x, y := unsafe.Add(a, p.offset), unsafe.Add(b, p.offset)
		switch p.look {
		case lookPlain:
			if !samePlain(x, y, p.size) {
				return false
			}
			continue
		case lookText:
			if *(*string)(x) != *(*string)(y) {
				return false
			}
			continue
		case lookList:
			if (*list)(x).length == 0 && (*list)(y).length == 0 {
				continue
			}
		case lookPointer, lookTexts, lookResources, lookAbsent:
			if *(*unsafe.Pointer)(x) == nil && *(*unsafe.Pointer)(y) == nil {
				continue
			}
		case lookStruct, lookNever:
		}
		if !p.shape.isSame(x, y, budget) {
			return false
		}
	}
	return true
}

func samePlain(a, b unsafe.Pointer, size uintptr) bool {
	return unsafe.String((*byte)(a), size) == unsafe.String((*byte)(b), size)
}

// list is a slice of any type in memory.
type list struct {
	first            unsafe.Pointer
	length, capacity int
}

func (s *shape) sameList(a, b *list, budget *int) bool {
	if a.length != b.length {
		return false
	}
	if s.element.look == lookPlain {
		return a.length == 0 || samePlain(a.first, b.first, uintptr(a.length)*s.size)
	}
	for i := range a.length {
		offset := uintptr(i) * s.size
		if !s.element.isSame(unsafe.Add(a.first, offset), unsafe.Add(b.first, offset), budget) {
			return false
		}
	}
	return true
}

func sameTexts(a, b map[string]string, budget *int) bool {
	if len(a) != len(b) {
		return false
	}
	if *budget -= len(a); *budget < 0 {
		return false
	}
	for key, x := range a {
		if y, inBoth := b[key]; !inBoth || x != y {
			return false
		}
	}
	return true
}

// sameState counts the values that were compared without effect.
type sameState struct{ looked int }

// memory is where two structs lie; nil for elements of maps.
type memory struct{ a, b unsafe.Pointer }

func memoryOf(a, b reflect.Value) memory {
	if !a.CanAddr() || !b.CanAddr() {
		return memory{}
	}
	return memory{a.Addr().UnsafePointer(), b.Addr().UnsafePointer()}
}

// isSame reports whether a field of two structs is certainly equal. If it is not, the work was
// wasted, and its parts are compared again, and so on. So this is bounded as well.
func (c *Comparison) isSame(field *planned, m memory) bool {
	if m.a == nil {
		return false
	}
	const again = 8
	if c.same.looked > again*c.MaxCompared {
		return false
	}
	left := c.left
	if field.shape.isSame(unsafe.Add(m.a, field.offset), unsafe.Add(m.b, field.offset), &c.left) {
		return true
	}
	c.same.looked += left - c.left
	c.left = left
	return false
}
