// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"hash/maphash"
	"reflect"
	"strings"
	"unicode/utf8"
)

// largeChange are the hashes of values of which only a part is shown.
type largeChange struct {
	index    int
	old, now uint64
	known    bool
}

// maxHashed bounds what is looked at of a value that is no text, because it has to be rendered for that.
const maxHashed = 64 << 10

var hashSeed = maphash.MakeSeed()

// isCut says whether a rendered value is not all of it: a text that ends like that has a quotation mark behind it.
func isCut(text string) bool { return strings.HasSuffix(text, "…") }

func hashLarge(index int, change *Change, a, b reflect.Value) largeChange {
	old, knownOld := hashValue(change.Old, a)
	now, knownNow := hashValue(change.New, b)
	return largeChange{index, old, now, knownOld && knownNow}
}

// hashValue is the hash of a value that was rendered; it is not known if it is too large.
func hashValue(rendered string, v reflect.Value) (hash uint64, known bool) {
	if !isCut(rendered) {
		return maphash.String(hashSeed, rendered), true
	}
	if text, ok := asText(v); ok {
		return maphash.String(hashSeed, text), true
	}
	p := &renderer{limit: maxHashed}
	p.value(v, 0)
	return maphash.Bytes(hashSeed, p.text), !p.random && !p.full()
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
		return shorten(string(appendQuoted(nil, "…"+shorten(x[from:], limit))), limit), shorten(string(appendQuoted(nil, "…"+shorten(y[from:], limit))), limit)
	}
	x, y := render(a, maxHashed), render(b, maxHashed)
	from := differsFrom(x, y, before)
	return shorten("…"+x[from:], limit), shorten("…"+y[from:], limit)
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
