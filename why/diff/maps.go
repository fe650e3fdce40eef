// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func (c *Comparison) compareTypedMaps(a, b reflect.Value) {
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
	keyType := a.Type().Key()
	c.inOrder(func(visit func(string)) {
		for entries := a.MapRange(); entries.Next() && c.left > 0; {
			visit(entries.Key().String())
		}
		for entries := b.MapRange(); entries.Next() && c.left > 0; {
			if key := entries.Key(); !a.MapIndex(key).IsValid() {
				visit(key.String())
			}
		}
	}, func(name string) {
		key := reflect.ValueOf(name).Convert(keyType)
		x, y := a.MapIndex(key), b.MapIndex(key)
		c.path = append(c.path, Step{Name: name, Kind: StepKey})
		switch {
		case c.isNoise():
		case x.IsValid() && y.IsValid():
			c.compareValues(x, y)
		default:
			c.left--
			c.add(x, y)
		}
		c.path = c.path[:len(c.path)-1]
	})
}

// inOrder compares two maps in the order of their keys, so the same change always has the same
// text. It sorts only keys whose values differ, which are few. To find them, it compares values
// twice. Beyond a bound, the order is random.
func (c *Comparison) inOrder(each func(visit func(key string)), compare func(key string)) {
	if c.probing || c.probed > c.MaxCompared {
		each(compare)
		return
	}
	// Maps are nested, so the names of inner maps follow those of outer maps.
	used := len(c.names)
	each(func(key string) {
		if c.probed > c.MaxCompared {
			c.names = append(c.names, key)
			return
		}
		changed, left := c.Changed, c.left
		c.probing = true
		compare(key)
		c.probing = false
		if c.Changed > changed || c.left <= 0 {
			c.names = append(c.names, key)
			c.probed += left - c.left
			c.Changed, c.left = changed, left
		}
	})
	names := c.names[used:]
	slices.Sort(names)
	for _, key := range names {
		if c.left <= 0 {
			break
		}
		compare(key)
	}
	c.names = c.names[:used]
}

// compareTexts compares what most maps are, labels and annotations among them.
func (c *Comparison) compareTexts(a, b map[string]string) {
	used := len(c.names)
	for key, x := range a {
		if c.left--; c.left < 0 {
			break
		}
		if y, inBoth := b[key]; !inBoth || x != y {
			c.names = append(c.names, key)
		}
	}
	for key := range b {
		if _, inBoth := a[key]; !inBoth && c.left > 0 {
			c.left--
			c.names = append(c.names, key)
		}
	}
	names := c.names[used:]
	slices.Sort(names)
	for _, key := range names {
		c.path = append(c.path, Step{Name: key, Kind: StepKey})
		if !c.isNoise() {
			c.add(entry(a, key), entry(b, key))
		}
		c.path = c.path[:len(c.path)-1]
	}
	c.names = c.names[:used]
}

func entry(texts map[string]string, key string) reflect.Value {
	text, ok := texts[key]
	if !ok {
		return reflect.Value{}
	}
	return reflect.ValueOf(text)
}

// sameResources compares by what quantities mean.
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
