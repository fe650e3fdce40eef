// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// learnEffect keeps whether a value has changed anything: after the change, or after a fresh start. Only after a fresh start it is known
// that a value has no effect. A property that was not set before says nothing: the value may be the one that the operator chooses by
// itself.
func (c *campaign) learnEffect(p *Plan, now *made, fresh bool) {
	change, err := changeOf(p.Value)
	if p.Variant == unchanged || err != nil || change.Class != values.Valid || isEmpty(change.Value) {
		return
	}
	kind, _, _ := strings.Cut(p.Object, " ")
	before := c.learnedMade(p.Step - 1)
	if !slices.ContainsFunc(sortedKeys(before.state), func(key world.Key) bool { return key.String() == p.Object && change.IsSet(before.state[key].Object) }) {
		return
	}
	// Here, everything is an effect: also what deviates leaves out.
	seen := len(c.mask.Differences(c.madeShapes(before, now, textsOf(p)...))) > 0 || len(c.mask.Differences(c.statusShape(before, textsOf(p)), c.statusShape(now, textsOf(p)))) > 0
	if !seen && !fresh {
		return
	}
	property := kind + " " + values.Path(change.Path)
	c.effectsLock.Lock()
	defer c.effectsLock.Unlock()
	if c.effects == nil {
		c.effects = map[string]bool{}
	}
	c.effects[property] = c.effects[property] || seen
}

// isEmpty reports whether a value is none: what is removed or emptied may mean the same as before.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, one := range v {
			if !isEmpty(one) {
				return false
			}
		}
		return true
	case []any:
		return !slices.ContainsFunc(v, func(one any) bool { return !isEmpty(one) })
	}
	return value == ""
}

// statusShape normalizes the status of the custom resources.
func (c *campaign) statusShape(m *made, known []string) compare.Shape {
	subjects := world.State{}
	for _, subject := range c.o.Subjects {
		if key, live := find(m.state, subject); live != nil {
			subjects[key] = live
		}
	}
	shape := compare.ShapeOf(subjects, nil, slices.Concat(c.o.Texts, known)...)
	for _, fields := range shape.Objects {
		maps.DeleteFunc(fields, func(path, _ string) bool {
			return !compare.Difference{Path: path}.IsStatus() || strings.HasSuffix(path, "bservedGeneration")
		})
	}
	return shape
}

// hasEffect reports whether a property, or one below it, has changed anything.
func (c *campaign) hasEffect(property string) bool {
	for other, seen := range c.effects {
		if seen && (other == property || strings.HasPrefix(other, property+".") || strings.HasPrefix(other, property+"[")) {
			return true
		}
	}
	return false
}

// withoutEffect are the properties of which no valid value has changed anything.
func (c *campaign) withoutEffect() (properties []string) {
	c.effectsLock.Lock()
	defer c.effectsLock.Unlock()
	for property := range c.effects {
		if !c.hasEffect(property) {
			properties = append(properties, property)
		}
	}
	slices.Sort(properties)
	return properties
}
