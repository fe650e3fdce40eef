// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
)

func (c *comparison) compareTypedMaps(a, b reflect.Value) {
	if a.Len() == 0 && b.Len() == 0 || a.Type().Key().Kind() != reflect.String {
		return
	}
	if x, ok := a.Interface().(map[string]string); ok {
		c.compareTexts(x, b.Interface().(map[string]string))
		return
	}
	if x, ok := a.Interface().(corev1.ResourceList); ok && sameResources(x, b.Interface().(corev1.ResourceList)) {
		c.left -= len(x)
		return
	}
	visit := func(key, x, y reflect.Value) {
		c.path = append(c.path, step{name: key.String(), kind: stepKey})
		if !c.isNoise() {
			if x.IsValid() && y.IsValid() {
				c.compareValues(x, y)
			} else {
				c.left--
				c.add(x, y)
			}
		}
		c.path = c.path[:len(c.path)-1]
	}
	for entries := a.MapRange(); entries.Next() && c.left > 0; {
		key := entries.Key()
		visit(key, entries.Value(), b.MapIndex(key))
	}
	for entries := b.MapRange(); entries.Next() && c.left > 0; {
		if key := entries.Key(); !a.MapIndex(key).IsValid() {
			visit(key, reflect.Value{}, entries.Value())
		}
	}
}

// sameResources spares what is the same nearly always the copies that reflection makes of quantities.
func sameResources(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, x := range a {
		if y, inBoth := b[name]; !inBoth || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

// compareTexts compares what most maps are, labels and annotations among them.
func (c *comparison) compareTexts(a, b map[string]string) {
	differs := func(key string, x, y reflect.Value) {
		c.path = append(c.path, step{name: key, kind: stepKey})
		if !c.isNoise() {
			c.add(x, y)
		}
		c.path = c.path[:len(c.path)-1]
	}
	for key, x := range a {
		if c.left--; c.left < 0 {
			return
		}
		if y, inBoth := b[key]; !inBoth {
			differs(key, reflect.ValueOf(x), reflect.Value{})
		} else if x != y {
			differs(key, reflect.ValueOf(x), reflect.ValueOf(y))
		}
	}
	for key, y := range b {
		if _, inBoth := a[key]; !inBoth && c.left > 0 {
			c.left--
			differs(key, reflect.Value{}, reflect.ValueOf(y))
		}
	}
}
