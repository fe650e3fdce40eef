// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Class says what an operator can be expected to do with a change.
type Class string

const (
	// Valid is a change that the operator should carry out.
	Valid Class = "Valid"
	// Limit is a change to a value at the edge of what the schema allows, or of unknown meaning, such as another text
	// for a free string. The operator may carry it out or report it.
	Limit Class = "Limit"
	// Misuse is a change that satisfies the schema, but is meaningful and wrong. The operator should report it.
	Misuse Class = "Misuse"
)

// Change is one value for one property of a custom resource.
type Change struct {
	// Path is the field path from the root of the object, such as spec, replicas. A list element is its index; the
	// length of the list appends.
	Path []string `json:"path"`
	// Value is a JSON value: int64, float64, string, bool, map[string]any or []any. Nil removes the property.
	Value any `json:"value"`
	// Class says what to expect of the operator.
	Class Class `json:"class"`
	// Why describes the value in a few words, such as "at its maximum".
	Why string `json:"why"`
	// Also are changes that go with this one, such as an enabled beside the property that is switched on.
	Also []Change `json:"also,omitempty"`
	// Property is the path of the property that is tried. It is longer than Path if a block is added with it.
	Property []string `json:"-"`
}

// pausing are switches that make an operator do nothing for an object.
var pausing = regexp.MustCompile(`(?i)^(paused?|suspend(ed)?|unmanaged|management(State|Policy)|(skip|disable|pause)Reconcil(e|ing|iation))$`)

// Pauses reports whether the change may make an operator do nothing for the object. It then rightly leaves what it has created, and
// creates nothing after a fresh start.
func (c Change) Pauses() bool {
	path := c.Property
	if len(path) == 0 {
		path = c.Path
	}
	return len(path) > 0 && pausing.MatchString(path[len(path)-1]) || slices.ContainsFunc(c.Also, Change.Pauses)
}

// Apply returns a copy of an object with the change, and the changes that go with it. The object stays as it is.
func (c Change) Apply(object map[string]any) (map[string]any, error) {
	changed := any(normalize(object))
	for _, one := range append([]Change{c}, c.Also...) {
		var err error
		if changed, err = set(changed, one.Path, normalize(one.Value)); err != nil {
			return nil, fmt.Errorf("changing %s: %w", Path(one.Path), err)
		}
	}
	return changed.(map[string]any), nil
}

// String returns the change in one line, such as "spec.replicas = 3 (scale up)".
func (c Change) String() string {
	var text strings.Builder
	text.WriteString(c.assignment())
	for _, also := range c.Also {
		text.WriteString(" with " + also.assignment())
	}
	if c.Why != "" {
		text.WriteString(" (" + c.Why + ")")
	}
	return text.String()
}

// From returns the change to an object in one line, such as "spec.replicas changes from 1 to 3".
func (c Change) From(object map[string]any) string {
	var text strings.Builder
	for i, one := range append([]Change{c}, c.Also...) {
		if i > 0 {
			text.WriteString(", and ")
		}
		old, found := at(object, one.Path)
		switch {
		case one.Value == nil:
			text.WriteString(Path(one.Path) + " is removed")
		case found:
			text.WriteString(Path(one.Path) + " changes from " + short(old) + " to " + short(one.Value))
		default:
			text.WriteString(Path(one.Path) + " is set to " + short(one.Value))
		}
	}
	return text.String()
}

// IsSet reports whether an object has the property that the change is about.
func (c Change) IsSet(object map[string]any) bool {
	_, found := at(object, c.Path)
	return found
}

// In returns the property that the change is about as an object has it; nil if it has none.
func (c Change) In(object map[string]any) any {
	value, _ := at(object, c.Path)
	return value
}

// at returns the value at a path.
func at(in any, path []string) (value any, found bool) {
	for _, segment := range path {
		switch container := in.(type) {
		case map[string]any:
			if in, found = container[segment]; !found {
				return nil, false
			}
		case []any:
			index, err := strconv.Atoi(segment)
			if err != nil || index < 0 || index >= len(container) {
				return nil, false
			}
			in = container[index]
		default:
			return nil, false
		}
	}
	return in, true
}

// longest is how many characters of a value String shows.
const longest = 80

func (c Change) assignment() string {
	if c.Value == nil {
		return "remove " + Path(c.Path)
	}
	return Path(c.Path) + " = " + short(c.Value)
}

// short returns a value as JSON, and of a long one the beginning.
func short(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		raw = []byte(fmt.Sprint(value))
	}
	text := string(raw)
	if count := utf8.RuneCountInString(text); count > longest {
		text = fmt.Sprintf("%s… (%d characters)", string([]rune(text)[:longest-20]), count)
	}
	return text
}

// Path returns a field path as text, such as spec.ports[0].port.
func Path(path []string) string {
	var text strings.Builder
	for at, segment := range path {
		_, err := strconv.Atoi(segment)
		switch {
		case err == nil:
			text.WriteString("[" + segment + "]")
		case strings.ContainsAny(segment, "./[]"):
			text.WriteString("[" + strconv.Quote(segment) + "]")
		case at == 0:
			text.WriteString(segment)
		default:
			text.WriteString("." + segment)
		}
	}
	return text.String()
}

// set returns a value with the property at a path set or, with nil, removed. It may change the value it is given.
func set(in any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch container := in.(type) {
	case nil:
		if value == nil {
			return nil, nil
		}
		return set(map[string]any{}, path, value)
	case map[string]any:
		if len(path) == 1 && value == nil {
			delete(container, path[0])
			return container, nil
		}
		child, present := container[path[0]]
		if !present && value == nil {
			return container, nil
		}
		child, err := set(child, path[1:], value)
		if err != nil {
			return nil, err
		}
		container[path[0]] = child
		return container, nil
	case []any:
		index, err := strconv.Atoi(path[0])
		if err != nil || index < 0 || index > len(container) || index == len(container) && value == nil {
			return nil, fmt.Errorf("%q is no index in a list of %d", path[0], len(container))
		}
		if len(path) == 1 && value == nil {
			return slices.Delete(container, index, index+1), nil
		}
		if index == len(container) {
			container = append(container, nil)
		}
		if container[index], err = set(container[index], path[1:], value); err != nil {
			return nil, err
		}
		return container, nil
	default:
		return nil, fmt.Errorf("%q is below a %T, which has no fields", path[0], in)
	}
}

// normalize returns a deep copy with the types that JSON has in Kubernetes: int64, float64, string, bool, map and slice.
func normalize[T any](value T) T {
	normal, _ := copyJSON(value).(T)
	return normal
}

func copyJSON(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if v == nil {
			return nil
		}
		fields := make(map[string]any, len(v))
		for name, field := range v {
			fields[name] = copyJSON(field)
		}
		return fields
	case []any:
		elements := make([]any, len(v))
		for at, element := range v {
			elements[at] = copyJSON(element)
		}
		return elements
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return copyJSON(float64(v))
	case float64:
		// Most decoders read every number as a float64.
		if whole := int64(v); float64(whole) == v {
			return whole
		}
		return v
	case json.Number:
		if whole, err := v.Int64(); err == nil {
			return whole
		}
		fraction, _ := v.Float64()
		return fraction
	default:
		return value
	}
}
