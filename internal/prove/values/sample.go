// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/opdock/opdock/internal/crdschema"
)

// sampler makes values up from a schema: as little as the schema asks for.
type sampler struct {
	// parts are compiled schemas by their JSON; nil for one that does not compile.
	parts map[string]*crdschema.Schema
}

// sample returns a value, or nil. Guessed says that it has content whose meaning is unknown.
func (m *sampler) sample(schema *props, name string) (value any, guessed bool) {
	values, guessed := m.samples(schema, name)
	if len(values) == 0 {
		return nil, guessed
	}
	return values[0], guessed
}

// samples returns values in the order in which to try them.
func (m *sampler) samples(schema *props, name string) (values []any, guessed bool) {
	if value := defaultOf(schema); value != nil {
		return []any{value}, false
	}
	for _, value := range enumOf(schema) {
		if value != "" {
			values = append(values, value)
		}
	}
	if len(values) > 0 {
		return values, false
	}
	if value, guessed, ok := sampleOf(schema, name); ok && m.accepts(schema, value) {
		return []any{value}, guessed
	}
	switch kindOf(schema) {
	case "object":
		return m.objects(schema, name)
	case "map":
		value, guessed := m.sample(schema.AdditionalProperties.Schema, name)
		if value == nil {
			return []any{map[string]any{}}, true
		}
		return []any{map[string]any{"example": value}}, guessed
	case "array":
		return m.lists(schema, name)
	case "integer", "number":
		return m.numbers(schema), false
	case "boolean":
		return []any{true, false}, false
	case "int-or-string":
		return []any{int64(1), "1"}, false
	case "string":
		return m.strings(schema), true
	}
	if schema.XEmbeddedResource {
		return []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "example"}}}, true
	}
	if schema.Type == "object" {
		return []any{map[string]any{}}, true
	}
	return nil, true
}

func (m *sampler) lists(schema *props, name string) (values []any, guessed bool) {
	items := itemsOf(schema)
	if items == nil {
		return []any{[]any{}}, true
	}
	element, guessed := m.sample(items, name)
	if element == nil {
		return []any{[]any{}}, guessed
	}
	list := []any{element}
	for schema.MinItems != nil && int64(len(list)) < *schema.MinItems {
		list = append(list, m.vary(items, name, element, append(slices.Clone(unique), schema.XListMapKeys...), len(list)+1))
	}
	return []any{list}, guessed
}

func (m *sampler) numbers(schema *props) []any {
	step := 1.0
	if schema.MultipleOf != nil {
		step = *schema.MultipleOf
	}
	least, most := bounds(schema, step)
	value := step
	if schema.Minimum != nil {
		value = max(least, value)
	}
	if schema.Maximum != nil {
		value = min(most, value)
	}
	if schema.Type == "integer" {
		return []any{int64(value)}
	}
	return []any{value}
}

func (m *sampler) strings(schema *props) []any {
	found := []any{"example"}
	found = append(found, formats[schema.Format]...)
	for _, value := range matching(schema.Pattern) {
		found = append(found, value)
	}
	if schema.MinLength != nil {
		found = append(found, ofLength(schema, "example", int(*schema.MinLength))...)
	}
	if schema.MaxLength != nil && *schema.MaxLength < int64(len("example")) {
		found = append(found, ofLength(schema, "example", int(*schema.MaxLength))...)
	}
	return m.accepted(schema, found)
}

// mostAlternatives is how many objects are made up for one schema.
const mostAlternatives = 3

// preferred are properties that make an object complete with little else, for schemas that ask for one of several.
var preferred = []string{"value", "name", "emptyDir", "configMap", "tcpSocket", "exec", "httpGet", "configMapRef", "secretRef", "podSelector", "matchLabels"}

// objects returns objects with the required properties, switched on; and, if rules ask for more, with one more property.
func (m *sampler) objects(schema *props, name string) (values []any, guessed bool) {
	base := map[string]any{}
	for _, required := range slices.Sorted(slices.Values(schema.Required)) {
		property, has := schema.Properties[required]
		if !has {
			continue
		}
		value, guess := m.sample(&property, m.nameIn(required, name))
		if value == nil {
			return nil, true
		}
		base[required], guessed = value, guessed || guess
	}
	if sw := switchOf(schema); sw != "" {
		base[sw] = true
	}
	if m.accepts(schema, base) {
		return []any{base}, guessed
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, optional := range append(slices.Clone(preferred), names...) {
		property, has := schema.Properties[optional]
		if _, set := base[optional]; !has || set {
			continue
		}
		value, guess := m.sample(&property, m.nameIn(optional, name))
		if value == nil {
			continue
		}
		object := maps.Clone(base)
		object[optional] = value
		if m.accepts(schema, object) && !slices.ContainsFunc(values, func(other any) bool { return equal(other, object) }) {
			values, guessed = append(values, object), guessed || guess
		}
		if len(values) == mostAlternatives {
			break
		}
	}
	return values, guessed
}

// nameIn returns the name by which to recognize a property: name says nothing, secretRef.name does.
func (m *sampler) nameIn(property, in string) string {
	if property == "name" || property == "key" {
		return in + "." + property
	}
	return property
}

// vary returns a copy of a value that differs from it: in the keys of an object, or as a whole.
func (m *sampler) vary(schema *props, name string, value any, keys []string, count int) any {
	switch v := normalize(value).(type) {
	case string:
		if hostName.MatchString(name) {
			return "host-" + strconv.Itoa(count) + "." + v
		}
		return v + "-" + strconv.Itoa(count)
	case int64:
		return v + int64(count) - 1
	case map[string]any:
		for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
			property, has := schema.Properties[key]
			if current, present := v[key]; present && has && len(property.Enum) == 0 {
				v[key] = m.vary(&property, key, current, nil, count)
			}
		}
		return v
	default:
		return v
	}
}

// accepted returns the values that a schema accepts.
func (m *sampler) accepted(schema *props, values []any) []any {
	return slices.DeleteFunc(values, func(value any) bool { return !m.accepts(schema, value) })
}

// accepts reports whether a value satisfies the schema of its property, with defaults.
func (m *sampler) accepts(schema *props, value any) bool {
	raw, err := json.Marshal(schema)
	if err != nil {
		return false
	}
	part, compiled := m.parts[string(raw)]
	if !compiled {
		if part, err = crdschema.NewPart(schema); err != nil {
			part = nil
		}
		m.parts[string(raw)] = part
	}
	if part == nil {
		return false
	}
	value = normalize(value)
	part.Default(value)
	return len(part.Validate(context.Background(), value, nil)) == 0
}
