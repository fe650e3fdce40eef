// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"math"
	"strings"
	"unicode/utf8"
)

func (w *walker) visitBool(s site) {
	if on, _ := s.current().(bool); on {
		w.valid(s, "switched off", false)
	} else {
		w.valid(s, "switched on", true)
	}
}

// enumOf returns the values that a schema lists.
func enumOf(schema *props) []any {
	var values []any
	for _, raw := range schema.Enum {
		values = append(values, defaultOf(&props{Default: &raw}))
	}
	return values
}

// visitEnum proposes each value of an enum, and reports whether there is one.
func (w *walker) visitEnum(s site) bool {
	for _, value := range enumOf(s.schema) {
		if value == "" {
			w.limit(s, "empty", value)
			continue
		}
		w.valid(s, "another of its values", value)
	}
	return len(s.schema.Enum) > 0
}

func (w *walker) visitNumber(s site) {
	if w.visitEnum(s) {
		return
	}
	whole := s.schema.Type == "integer"
	step := 1.0
	if s.schema.MultipleOf != nil {
		step = *s.schema.MultipleOf
	}
	number := func(value float64) any {
		if whole {
			return int64(value)
		}
		return value
	}
	replicas := isReplicas(w, s)
	propose := func(class Class, why string, value float64) {
		if replicas && value > float64(w.options.MaxReplicas) {
			return
		}
		w.add(s, groupOther, class, why, number(value))
	}
	least, most := bounds(s.schema, step)
	// A value that is both one less and the least is proposed as the least.
	if s.schema.Minimum != nil {
		propose(Limit, "at its minimum", least)
	}
	if s.schema.Maximum != nil {
		propose(Limit, "at its maximum", most)
	}
	propose(Limit, "zero", 0)
	if current, ok := asFloat(s.current()); ok && !replicas {
		if s.schema.Maximum == nil || current+step != most {
			propose(Valid, "one more", current+step)
		}
		if less := current - step; less != 0 && (s.schema.Minimum == nil || less != least) {
			propose(Valid, "one less", less)
		}
	} else if !ok && s.schema.Minimum != nil {
		propose(Valid, "just above its minimum", least+step)
	} else if !ok {
		propose(Valid, "a small number", step)
	}
	if s.schema.Maximum == nil {
		large := float64(math.MaxInt32)
		if s.schema.Format == "int64" || !whole {
			large = 1 << 53
		}
		propose(Limit, "very large", math.Floor(large/step)*step)
	}
	if s.schema.Minimum == nil {
		propose(Misuse, "negative", -step)
	}
	if !whole {
		propose(Limit, "a fraction", least+step/3)
	}
}

// bounds returns the least and the largest value that a schema allows.
func bounds(schema *props, step float64) (least, most float64) {
	if schema.Minimum != nil {
		least = math.Ceil(*schema.Minimum/step) * step
		if schema.ExclusiveMinimum && least == *schema.Minimum {
			least += step
		}
	}
	if schema.Maximum != nil {
		most = math.Floor(*schema.Maximum/step) * step
		if schema.ExclusiveMaximum && most == *schema.Maximum {
			most -= step
		}
	}
	return least, most
}

func asFloat(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}

// Lengths of strings. One that is very long still fits into an object many times.
const (
	veryLong   = 4096
	mostLetter = 1 << 16
)

func (w *walker) visitString(s site) {
	if w.visitEnum(s) {
		return
	}
	if !s.known {
		for _, value := range formats[s.schema.Format] {
			w.valid(s, "another "+s.schema.Format, value)
		}
	}
	current, _ := s.current().(string)
	switch {
	case s.known && s.present:
		// Better values than made-up ones are proposed already.
	case current != "":
		w.limit(s, "another text", current+"-2", current+"2", "2"+current)
	default:
		if sample, guessed := w.sampler.sample(s.schema, s.name); sample != nil {
			w.add(s, groupOther, classOf(guessed), "set", sample)
		}
	}
	if s.schema.Pattern != "" && !s.known {
		for _, value := range matching(s.schema.Pattern) {
			w.limit(s, "matching its pattern", value)
		}
	}
	w.limit(s, "empty", "")
	if most := s.schema.MaxLength; most != nil && *most <= mostLetter {
		w.limit(s, "at its maximum length", ofLength(s.schema, current, int(*most))...)
	} else {
		w.limit(s, "very long", ofLength(s.schema, current, veryLong)...)
	}
	if least := s.schema.MinLength; least != nil && *least > 0 {
		w.limit(s, "at its minimum length", ofLength(s.schema, current, int(*least))...)
	}
	w.limit(s, "not ASCII", "zürich-船", "zürich", "船")
}

// ofLength returns strings with a number of characters: made of letters, or longer or shorter forms of others.
func ofLength(schema *props, current string, length int) []any {
	found := []any{strings.Repeat("a", length)}
	for _, base := range append(matching(schema.Pattern), current) {
		if base == "" {
			continue
		}
		runes := []rune(base)
		if short := length - len(runes); short > 0 {
			// Patterns often fix how a string begins or ends, so characters are added in front, behind and in between.
			for _, char := range []rune{'a', runes[0], runes[len(runes)-1]} {
				fill := strings.Repeat(string(char), short)
				found = append(found, base+fill, fill+base, string(runes[:1])+fill+string(runes[1:]),
					string(runes[:len(runes)-1])+fill+string(runes[len(runes)-1:]))
			}
		} else if utf8.RuneCountInString(base) > length {
			found = append(found, string(runes[:length]))
		}
	}
	return found
}

// formats are values for the formats of strings that the API server checks.
var formats = map[string][]any{
	"date-time": {"2030-01-02T03:04:05Z", "1970-01-01T00:00:00Z"},
	"date":      {"2030-01-02"},
	"duration":  {"30s", "5m0s", "24h"},
	"ipv4":      {"192.0.2.10"},
	"ipv6":      {"2001:db8::10"},
	"cidr":      {"192.0.2.0/24"},
	"hostname":  {"host.example.com"},
	"uri":       {"https://example.com/path"},
	"email":     {"someone@example.com"},
	"uuid":      {"6f1c3f2e-5a0b-4c3d-9e8f-0a1b2c3d4e5f"},
	"mac":       {"02:00:5e:10:00:01"},
	"byte":      {"b3Bkb2Nr"},
}
