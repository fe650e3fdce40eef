// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// maker makes small values that satisfy a schema.
type maker struct {
	// doubtful are paths of values that may not satisfy their schema.
	doubtful []string
}

func (m *maker) doubt(path string) {
	if !slices.Contains(m.doubtful, path) {
		m.doubtful = append(m.doubtful, path)
	}
}

// value makes a value. The path is for messages.
func (m *maker) value(schema map[string]any, path string, depth int) any {
	if depth > mostDepth {
		m.doubt(path)
		return nil
	}
	if fixed, found := schema["default"]; found && fixed != nil {
		return runtime.DeepCopyJSONValue(normal(fixed))
	}
	if enum, _ := schema["enum"].([]any); len(enum) > 0 {
		for _, one := range enum {
			if one != nil && one != "" {
				return runtime.DeepCopyJSONValue(normal(one))
			}
		}
		return normal(enum[0])
	}
	if rules, _ := schema["x-kubernetes-validations"].([]any); len(rules) > 0 {
		m.doubt(path) // rules in CEL are not evaluated
	}
	if schema["x-kubernetes-embedded-resource"] == true {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "example"}}
	}
	if schema["x-kubernetes-int-or-string"] == true {
		return m.number(schema, path, true)
	}
	switch schema["type"] {
	case "object":
		return m.object(schema, path, depth)
	case "array":
		return m.array(schema, path, depth)
	case "string":
		return m.text(schema, path)
	case "integer":
		return m.number(schema, path, true)
	case "number":
		return m.number(schema, path, false)
	case "boolean":
		return false
	}
	if schema["properties"] != nil {
		return m.object(schema, path, depth)
	}
	return map[string]any{}
}

// normal brings a number into a form that unstructured objects may hold.
func normal(value any) any {
	switch value := value.(type) {
	case int:
		return int64(value)
	case int32:
		return int64(value)
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
			return int64(value)
		}
	case []any:
		list := make([]any, 0, len(value))
		for _, one := range value {
			list = append(list, normal(one))
		}
		return list
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, one := range value {
			fields[name] = normal(one)
		}
		return fields
	}
	return value
}

// required returns the fields that must be there: those that are required, and those of the first alternative.
func (m *maker) required(schema map[string]any) []string {
	all := texts(schema["required"])
	parts, _ := schema["allOf"].([]any)
	for _, one := range parts {
		if part, ok := one.(map[string]any); ok {
			all = append(all, m.required(part)...)
		}
	}
	for _, name := range []string{"oneOf", "anyOf"} {
		alternatives, _ := schema[name].([]any)
		if len(alternatives) == 0 {
			continue
		}
		if first, ok := alternatives[0].(map[string]any); ok {
			all = append(all, m.required(first)...)
		}
	}
	return all
}

func (m *maker) object(schema map[string]any, path string, depth int) any {
	properties, _ := schema["properties"].(map[string]any)
	object := map[string]any{}
	for _, name := range m.required(schema) {
		property, ok := properties[name].(map[string]any)
		if _, made := object[name]; made {
			continue
		}
		if !ok {
			property, _ = schema["additionalProperties"].(map[string]any)
		}
		if !ok && property == nil {
			m.doubt(path + "." + name)
			property = map[string]any{"type": "string"}
		}
		object[name] = m.value(property, path+"."+name, depth+1)
	}
	least, _ := number(schema["minProperties"])
	if additional, _ := schema["additionalProperties"].(map[string]any); additional != nil {
		for i := 1; float64(len(object)) < least && i <= 100; i++ {
			object[fmt.Sprintf("key-%d", i)] = m.value(additional, path+".*", depth+1)
		}
	}
	for _, name := range sortedKeys(properties) {
		if property, ok := properties[name].(map[string]any); ok && float64(len(object)) < least && object[name] == nil {
			object[name] = m.value(property, path+"."+name, depth+1)
		}
	}
	if float64(len(object)) < least {
		m.doubt(path)
	}
	return object
}

func (m *maker) array(schema map[string]any, path string, depth int) any {
	least, _ := number(schema["minItems"])
	items, _ := schema["items"].(map[string]any)
	list := []any{}
	if least > 100 {
		m.doubt(path)
		return list
	}
	unique := schema["uniqueItems"] == true || schema["x-kubernetes-list-type"] == "set"
	keys := texts(schema["x-kubernetes-list-map-keys"])
	for i := range int(least) {
		item := m.value(items, fmt.Sprintf("%s[%d]", path, i), depth+1)
		if i > 0 && (unique || len(keys) > 0) {
			var ok bool
			if item, ok = another(items, item, keys, i); !ok {
				m.doubt(path)
			}
		}
		list = append(list, item)
	}
	return list
}

// another makes the i-th item of a list differ from those before it, if that is easy.
func another(schema map[string]any, item any, keys []string, i int) (any, bool) {
	switch value := item.(type) {
	case int64:
		return value + int64(i), within(schema, float64(value)+float64(i))
	case string:
		free := schema["enum"] == nil && schema["pattern"] == nil && schema["format"] == nil && schema["maxLength"] == nil
		if enum := texts(schema["enum"]); len(enum) > i {
			return enum[i], true
		}
		return fmt.Sprintf("%s-%d", value, i+1), free
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for _, key := range keys {
			property, _ := properties[key].(map[string]any)
			if different, ok := another(property, value[key], nil, i); ok && value[key] != nil {
				value[key] = different
				return value, true
			}
		}
	}
	return item, false
}

// number makes the smallest number that is allowed and not negative, and not zero unless it has to be.
func (m *maker) number(schema map[string]any, path string, whole bool) any {
	step := 1.0
	if multiple, ok := number(schema["multipleOf"]); ok && multiple > 0 {
		step = multiple
	}
	value := step
	if least, ok := number(schema["minimum"]); ok && least >= value {
		value = math.Ceil(least/step) * step
		if schema["exclusiveMinimum"] == true && value == least {
			value += step
		}
	}
	if most, ok := number(schema["maximum"]); ok && value > most {
		value = math.Floor(most/step) * step
	}
	if most, ok := number(schema["maximum"]); ok && schema["exclusiveMaximum"] == true && value == most {
		value -= step
	}
	if least, _ := number(schema["minimum"]); !whole && !within(schema, value) {
		most, _ := number(schema["maximum"])
		value = (least + most) / 2
	}
	if !within(schema, value) {
		m.doubt(path)
	}
	if whole || value == math.Trunc(value) {
		return int64(value)
	}
	return value
}

// within reports whether a number is within the limits of a schema.
func within(schema map[string]any, value float64) bool {
	least, low := number(schema["minimum"])
	most, high := number(schema["maximum"])
	switch {
	case low && (value < least || value == least && schema["exclusiveMinimum"] == true):
		return false
	case high && (value > most || value == most && schema["exclusiveMaximum"] == true):
		return false
	}
	step, ok := number(schema["multipleOf"])
	return !ok || step <= 0 || math.Abs(math.Remainder(value, step)) < 1e-9
}

// number reads a number of a schema.
func number(value any) (float64, bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case int:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

func texts(value any) []string {
	list, _ := value.([]any)
	var all []string
	for _, one := range list {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

func sortedKeys(fields map[string]any) []string { return slices.Sorted(maps.Keys(fields)) }

// formats are values of the formats that the API server checks.
var formats = map[string]string{
	"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "datetime": "2026-01-01T00:00:00Z", "duration": "1m",
	"email": "user@example.com", "uri": "http://example.com", "hostname": "example.com",
	"ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "ip": "192.0.2.1", "cidr": "192.0.2.0/24", "mac": "00:00:5e:00:53:01",
	"uuid": "c0ffee00-0000-4000-8000-000000000001", "uuid3": "c0ffee00-0000-3000-8000-000000000001",
	"uuid4": "c0ffee00-0000-4000-8000-000000000001", "uuid5": "c0ffee00-0000-5000-8000-000000000001",
	"byte": "ZXhhbXBsZQ==", "bsonobjectid": "5f0000000000000000000001", "isbn": "0321751043", "isbn10": "0321751043",
	"isbn13": "9780321751041", "creditcard": "4111111111111111", "ssn": "123-45-6789", "hexcolor": "#ffffff", "rgbcolor": "rgb(0,0,0)",
	"password": "example",
}

// words are values for fields whose name says what they hold.
var words = map[string]string{"image": "app:v1", "schedule": "*/5 * * * *", "cron": "*/5 * * * *", "storage": "1Gi", "memory": "64Mi", "cpu": "100m"}

func (m *maker) text(schema map[string]any, path string) any {
	least, _ := number(schema["minLength"])
	most, limited := number(schema["maxLength"])
	fits := func(text string) bool {
		length := float64(len([]rune(text)))
		return length >= least && (!limited || length <= most)
	}
	if pattern, _ := schema["pattern"].(string); pattern != "" {
		if text, ok := matching(pattern, fits); ok {
			return text
		}
		m.doubt(path)
		return "example"
	}
	if format, _ := schema["format"].(string); format != "" {
		if text, ok := formats[format]; ok && fits(text) {
			return text
		}
	}
	if text, ok := words[strings.ToLower(path[strings.LastIndexByte(path, '.')+1:])]; ok && fits(text) {
		return text
	}
	text := "example"
	switch {
	case limited && float64(len(text)) > most:
		text = text[:max(int(most), 0)]
	case float64(len(text)) < least && least <= 10_000:
		text += strings.Repeat("x", int(least)-len(text))
	}
	if !fits(text) {
		m.doubt(path)
	}
	return text
}
