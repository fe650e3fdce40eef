// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"hash/maphash"
	"reflect"
	"unicode/utf8"
)

// LargeChange holds the hashes of values that are shown shortened.
type LargeChange struct {
	Index    int
	Old, Now uint64
	Known    bool
}

// maxHashed bounds how much of a value that is not a string is hashed, because it has to be rendered
// first.
const maxHashed = 64 << 10

var hashSeed = maphash.MakeSeed()

// Hash returns the hash of a value that is shown completely, to compare it with those of
// LargeChange.
func Hash(value string) uint64 { return maphash.String(hashSeed, value) }

// rendered is a value in the text of a comparison.
type rendered struct {
	shown extent
	// cut is whether that is not all of it. Then sum is the hash of all, unless that is unknown: it is too large, or looks
	// different each time.
	cut, unknown bool
	sum          uint64
}

// render adds a value to the text, cut after maxValue bytes.
func (c *Comparison) render(v reflect.Value) (r rendered) {
	from := len(c.text)
	if isThere(v) {
		if text, ok := asText(v); ok {
			c.text = appendQuoted(c.text, Shorten(text, c.MaxValue+8)) // a little more, to show that it is shortened
			if r.cut = len(c.text)-from > c.MaxValue; r.cut {
				r.sum = maphash.String(hashSeed, text)
			}
		} else {
			p := &c.renderer
			p.begin(c.text, maxHashed)
			p.value(v, 0)
			c.text = p.text
			if r.cut = len(c.text)-from > c.MaxValue; r.cut {
				r.sum, r.unknown = maphash.Bytes(hashSeed, c.text[from:]), p.random || p.full()
			}
		}
	}
	if r.cut {
		c.text = shortenFrom(c.text, from, c.MaxValue)
	}
	r.shown = extent{from, len(c.text)}
	return r
}

// hash returns the hash of the whole value.
func (r rendered) hash(text []byte) uint64 {
	if r.cut {
		return r.sum
	}
	return maphash.Bytes(hashSeed, r.shown.of(text))
}

func asText(v reflect.Value) (text string, ok bool) {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	if !v.IsValid() || v.Kind() != reflect.String {
		return "", false
	}
	return v.String(), true
}

// renderDifference shows two large values from a little before where they begin to differ.
func renderDifference(a, b reflect.Value, limit int) (old, now string) {
	before := limit / 4
	x, isText := asText(a)
	if y, both := asText(b); isText && both {
		from := differsFrom(x, y, before)
		return Shorten(string(appendQuoted(nil, "…"+Shorten(x[from:], limit))), limit), Shorten(string(appendQuoted(nil, "…"+Shorten(y[from:], limit))), limit)
	}
	x, y := render(a, maxHashed), render(b, maxHashed)
	from := differsFrom(x, y, before)
	return Shorten("…"+x[from:], limit), Shorten("…"+y[from:], limit)
}

// differsFrom is some bytes before the first difference, at the begin of a character.
func differsFrom(a, b string, before int) int {
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	from = min(max(0, from-before), len(a)-1, len(b)-1)
	for from > 0 && (!utf8.RuneStart(a[from]) || !utf8.RuneStart(b[from])) {
		from--
	}
	return max(0, from)
}
