// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/json"
)

// compareMaps compares objects without a type.
func (c *Comparison) compareMaps(a, b map[string]any) {
	c.inOrder(func(visit func(string)) {
		for key := range a {
			if c.left <= 0 {
				return
			}
			visit(key)
		}
		for key := range b {
			if c.left <= 0 {
				return
			}
			if _, inBoth := a[key]; !inBoth {
				visit(key)
			}
		}
	}, func(key string) {
		x, inA := a[key]
		y, inB := b[key]
		c.compareEntry(key, x, y, inA && inB)
	})
}

func (c *Comparison) compareEntry(key string, x, y any, inBoth bool) {
	c.path = append(c.path, Step{Name: key, Kind: StepKey})
	switch {
	case c.isNoise():
	case inBoth:
		c.compareAny(x, y)
	case len(c.path) == 2 && c.path[0].Name == "metadata" && (isMap(x) || isMap(y)):
		// The first label or annotation was added, or the last one removed.
		a, _ := x.(map[string]any)
		b, _ := y.(map[string]any)
		c.compareMaps(a, b)
	default:
		c.left--
		c.add(reflect.ValueOf(x), reflect.ValueOf(y))
	}
	c.path = c.path[:len(c.path)-1]
}

func isMap(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// compareAny compares decoded JSON values.
func (c *Comparison) compareAny(a, b any) {
	if c.left--; c.left < 0 {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			c.compareMaps(x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			c.compareSlices(x, y)
			return
		}
	default:
		if isComparable(a) && isComparable(b) && a == b {
			return
		}
	}
	c.add(reflect.ValueOf(a), reflect.ValueOf(b))
}

func isComparable(v any) bool { return v == nil || reflect.TypeOf(v).Comparable() }

func (c *Comparison) compareSlices(a, b []any) {
	if len(a) == 0 && len(b) == 0 {
		return
	}
	for _, key := range mergeKeys {
		inA, ok := byAnyKey(a, key)
		if !ok {
			continue
		}
		inB, ok := byAnyKey(b, key)
		if !ok {
			continue
		}
		for i := 0; i < len(inA) && c.left > 0; i++ {
			c.compareAnyElement(Step{Kind: StepElement, Key: key, Value: inA[i].value}, a, b, inA[i].index, find(inB, inA[i].value, i))
		}
		for i := 0; i < len(inB) && c.left > 0; i++ {
			if find(inA, inB[i].value, i) == missing {
				c.compareAnyElement(Step{Kind: StepElement, Key: key, Value: inB[i].value}, a, b, missing, inB[i].index)
			}
		}
		return
	}
	if areScalars(a) && areScalars(b) {
		c.compareScalarsAny(a, b)
		return
	}
	for i := range max(len(a), len(b)) {
		if c.left <= 0 {
			return
		}
		c.compareAnyElement(Step{Kind: stepIndex, index: i}, a, b, i, i)
	}
}

func (c *Comparison) compareScalarsAny(a, b []any) {
	c.left -= min(len(a), len(b))
	same := len(a) == len(b)
	for i := 0; same && i < len(a); i++ {
		same = a[i] == b[i]
	}
	if !same {
		c.add(reflect.ValueOf(a), reflect.ValueOf(b))
	}
}

func areScalars(list []any) bool {
	for _, element := range list {
		if !isComparable(element) {
			return false
		}
	}
	return true
}

func (c *Comparison) compareAnyElement(which Step, a, b []any, inA, inB int) {
	c.path = append(c.path, which)
	if inA < len(a) && inB < len(b) {
		c.compareAny(a[inA], b[inB])
	} else {
		c.left--
		var x, y any
		if inA < len(a) {
			x = a[inA]
		}
		if inB < len(b) {
			y = b[inB]
		}
		c.add(reflect.ValueOf(x), reflect.ValueOf(y))
	}
	c.path = c.path[:len(c.path)-1]
}

func byAnyKey(list []any, key string) ([]keyed, bool) {
	const tooLong = 256
	if len(list) > tooLong {
		return nil, false
	}
	elements := make([]keyed, len(list))
	for i := range list {
		object, ok := list[i].(map[string]any)
		if !ok {
			return nil, false
		}
		var value string
		switch v := object[key].(type) {
		case string:
			value = v
		case int64, float64:
			value = fmt.Sprint(v)
		}
		if value == "" || find(elements[:i], value, i) != missing {
			return nil, false
		}
		elements[i] = keyed{value: value, index: i}
	}
	return elements, true
}

func decode(data []byte) (any, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var value any
	err := json.Unmarshal(data, &value)
	return value, err
}
