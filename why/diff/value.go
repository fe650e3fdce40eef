// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// render returns a value as JSON, cut after limit bytes. It reads little more of the value than that, so
// large values cost no more.
func render(v reflect.Value, limit int) string {
	if !isThere(v) {
		return ""
	}
	p := &renderer{}
	p.begin(nil, limit)
	p.value(v, 0)
	return Shorten(string(p.text), limit)
}

// isThere reports whether there is a value at all. Numbers always are: they read better as 0 than as nothing.
func isThere(v reflect.Value) bool {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		if v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.String, reflect.Map, reflect.Slice:
		return v.Len() > 0
	case reflect.Struct:
		return !v.IsZero()
	default:
		return true
	}
}

// emptyText is a value as JSON that isThere does not count.
func emptyText(v reflect.Value) string {
	for (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && !v.IsNil() {
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Map, reflect.Struct:
		return "{}"
	case reflect.Slice:
		return "[]"
	case reflect.String:
		return `""`
	default:
		return "null"
	}
}

type renderer struct {
	text []byte
	// from is where it began, and limit after how many bytes there is enough.
	from, limit int
	// random is whether the same value may look different the next time.
	random bool
}

// begin adds to a text.
func (p *renderer) begin(text []byte, limit int) {
	*p = renderer{text: text, from: len(text), limit: limit}
}

// full is when there is more than is wanted.
func (p *renderer) full() bool { return len(p.text)-p.from > p.limit }

func (p *renderer) value(v reflect.Value, depth int) {
	const tooDeep = 32
	switch {
	case p.full():
		return
	case !v.IsValid() || depth > tooDeep:
		p.text = append(p.text, "null"...)
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		p.value(v.Elem(), depth+1)
	case reflect.String:
		p.string(v.String())
	case reflect.Struct:
		p.structure(v, depth)
	case reflect.Map:
		p.object(v, depth)
	case reflect.Slice, reflect.Array:
		p.list(v, depth)
	default:
		p.leaf(v)
	}
}

func (p *renderer) leaf(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		p.text = strconv.AppendBool(p.text, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.text = strconv.AppendInt(p.text, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.text = strconv.AppendUint(p.text, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		p.text = strconv.AppendFloat(p.text, v.Float(), 'g', -1, 64)
	default:
		p.text = append(p.text, "null"...)
	}
}

func (p *renderer) string(text string) {
	// A little more than fits, to show that it is shortened.
	p.text = appendQuoted(p.text, Shorten(text, p.limit+8))
}

// appendQuoted appends a string as JSON. Unlike package json, it does not escape HTML, but escapes
// unprintable characters.
func appendQuoted(text []byte, value string) []byte {
	text = append(text, '"')
	for _, r := range value {
		switch {
		case r == '"' || r == '\\':
			text = append(text, '\\', byte(r))
		case r == '\n':
			text = append(text, '\\', 'n')
		case r == '\t':
			text = append(text, '\\', 't')
		case r == '\r':
			text = append(text, '\\', 'r')
		case unicode.IsPrint(r):
			text = utf8.AppendRune(text, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			text = fmt.Appendf(text, "\\u%04x\\u%04x", high, low)
		default:
			text = fmt.Appendf(text, "\\u%04x", r)
		}
	}
	return append(text, '"')
}

func (p *renderer) structure(v reflect.Value, depth int) {
	if v.CanInterface() {
		// Times, quantities and similar types have their own short encoding.
		if marshaler, ok := v.Interface().(json.Marshaler); ok {
			if data, err := marshaler.MarshalJSON(); err == nil {
				p.text = append(p.text, data[:min(len(data), p.limit+8)]...)
				return
			}
		}
	}
	p.text = append(p.text, '{')
	p.fields(v, depth)
	p.text = append(p.text, '}')
}

func (p *renderer) fields(v reflect.Value, depth int) {
	for _, field := range planFor(v.Type()).fields {
		value := v.Field(field.index)
		switch {
		case p.full():
			return
		case value.IsZero():
		case field.inline && value.Kind() == reflect.Struct:
			p.fields(value, depth+1)
		default:
			p.name(field.name)
			p.value(value, depth+1)
		}
	}
}

// name begins a field of an object.
func (p *renderer) name(name string) {
	if last := p.text[len(p.text)-1]; last != '{' {
		p.text = append(p.text, ',')
	}
	p.string(name)
	p.text = append(p.text, ':')
}

func (p *renderer) object(v reflect.Value, depth int) {
	p.text = append(p.text, '{')
	const sortable = 64
	if v.Len() > sortable {
		// Sorting would read all of it.
		p.random = true
		for entries := v.MapRange(); entries.Next() && !p.full(); {
			p.name(fmt.Sprint(entries.Key()))
			p.value(entries.Value(), depth+1)
		}
	} else {
		entries := make(map[string]reflect.Value, v.Len())
		for each := v.MapRange(); each.Next(); {
			entries[fmt.Sprint(each.Key())] = each.Value()
		}
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if p.full() {
				break
			}
			p.name(key)
			p.value(entries[key], depth+1)
		}
	}
	p.text = append(p.text, '}')
}

func (p *renderer) list(v reflect.Value, depth int) {
	if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
		// The checksum distinguishes values of the same length.
		p.string(fmt.Sprintf("(%d bytes, CRC %08x)", v.Len(), crc32.ChecksumIEEE(v.Bytes())))
		return
	}
	p.text = append(p.text, '[')
	for i := range v.Len() {
		if p.full() {
			break
		}
		if i > 0 {
			p.text = append(p.text, ',')
		}
		p.value(v.Index(i), depth+1)
	}
	p.text = append(p.text, ']')
}
