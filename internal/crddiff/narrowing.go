// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// values compares which values a property may have.
func (c *comparison) values(at string, old, updated *props) {
	c.enum(at, old.Enum, updated.Enum)
	c.atMost(at, "maximum", old.Maximum, updated.Maximum)
	c.atLeast(at, "minimum", old.Minimum, updated.Minimum)
	for _, limit := range []struct {
		name       string
		old, after *int64
		least      bool
	}{
		{"maxLength", old.MaxLength, updated.MaxLength, false}, {"minLength", old.MinLength, updated.MinLength, true},
		{"maxItems", old.MaxItems, updated.MaxItems, false}, {"minItems", old.MinItems, updated.MinItems, true},
		{"maxProperties", old.MaxProperties, updated.MaxProperties, false}, {"minProperties", old.MinProperties, updated.MinProperties, true},
	} {
		if limit.least {
			c.atLeast(at, limit.name, asFloat(limit.old), asFloat(limit.after))
		} else {
			c.atMost(at, limit.name, asFloat(limit.old), asFloat(limit.after))
		}
	}
	c.exclusive(at, "maximum", old.ExclusiveMaximum, updated.ExclusiveMaximum, updated.Maximum != nil && equalNumbers(old.Maximum, updated.Maximum))
	c.exclusive(at, "minimum", old.ExclusiveMinimum, updated.ExclusiveMinimum, updated.Minimum != nil && equalNumbers(old.Minimum, updated.Minimum))
	c.multiple(at, old.MultipleOf, updated.MultipleOf)
	switch {
	case old.Pattern == updated.Pattern:
	case updated.Pattern == "":
		c.add(Compatible, at, "Widened", "The pattern is removed.")
	case old.Pattern == "":
		c.narrowed(at, "The value must now match %q.", updated.Pattern)
	default:
		c.add(Risky, at, "PatternChanged", "The pattern changes from %q to %q. Objects with a value that does not match "+
			"no longer validate.", old.Pattern, updated.Pattern)
	}
	for _, one := range []struct {
		name       string
		old, after []props
	}{
		{"allOf", old.AllOf, updated.AllOf}, {"anyOf", old.AnyOf, updated.AnyOf}, {"oneOf", old.OneOf, updated.OneOf},
		{"not", list(old.Not), list(updated.Not)},
	} {
		// An int-or-string may be written with an anyOf or without it, which means the same.
		if !reflect.DeepEqual(one.old, one.after) && (one.name != "anyOf" || !updated.XIntOrString) {
			c.add(Risky, at, "ValidationChanged", "%s changes. Objects that do not satisfy it no longer validate.", one.name)
		}
	}
}

func list(schema *props) []props {
	if schema == nil {
		return nil
	}
	return []props{*schema}
}

// narrowed adds a difference that makes some values invalid.
func (c *comparison) narrowed(at string, format string, args ...any) {
	c.add(Breaking, at, "Narrowed", format+" Objects with another value no longer validate.", args...)
}

func (c *comparison) enum(at string, old, updated []apiextensionsv1.JSON) {
	texts := func(values []apiextensionsv1.JSON) (list []string) {
		for _, value := range values {
			list = append(list, string(value.Raw))
		}
		return list
	}
	before, after := texts(old), texts(updated)
	gone, more := without(before, after), without(after, before)
	switch {
	case len(before) == 0 && len(after) > 0:
		c.narrowed(at, "The value must now be one of %s.", strings.Join(after, ", "))
	case len(before) > 0 && len(after) == 0:
		c.add(Compatible, at, "Widened", "The list of values is removed. Clients may meet any value.")
	case len(gone) > 0:
		c.add(Breaking, at, "Narrowed", "%s can no longer be used. Objects with such a value no longer validate.", strings.Join(gone, ", "))
	}
	if len(before) > 0 && len(after) > 0 && len(more) > 0 {
		c.add(Compatible, at, "Widened", "%s can be used. Clients may meet such a value.", strings.Join(more, ", "))
	}
}

func asFloat(number *int64) *float64 {
	if number == nil {
		return nil
	}
	value := float64(*number)
	return &value
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

func equalNumbers(a, b *float64) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func (c *comparison) atMost(at string, name string, old, updated *float64) {
	switch {
	case equalNumbers(old, updated):
	case updated == nil:
		c.add(Compatible, at, "Widened", "%s (%s) is removed.", name, number(*old))
	case old == nil:
		c.add(Breaking, at, "Narrowed", "%s is now %s. Objects with more no longer validate.", name, number(*updated))
	case *updated < *old:
		c.add(Breaking, at, "Narrowed", "%s is lowered from %s to %s. Objects with more no longer validate.", name, number(*old), number(*updated))
	default:
		c.add(Compatible, at, "Widened", "%s is raised from %s to %s.", name, number(*old), number(*updated))
	}
}

func (c *comparison) atLeast(at string, name string, old, updated *float64) {
	switch {
	case equalNumbers(old, updated):
	case updated == nil:
		c.add(Compatible, at, "Widened", "%s (%s) is removed.", name, number(*old))
	case old == nil && *updated <= 0 && name != "minimum":
	case old == nil:
		c.add(Breaking, at, "Narrowed", "%s is now %s. Objects with less no longer validate.", name, number(*updated))
	case *updated > *old:
		c.add(Breaking, at, "Narrowed", "%s is raised from %s to %s. Objects with less no longer validate.", name, number(*old), number(*updated))
	default:
		c.add(Compatible, at, "Widened", "%s is lowered from %s to %s.", name, number(*old), number(*updated))
	}
}

func (c *comparison) exclusive(at string, name string, old, updated, sameLimit bool) {
	switch {
	case !sameLimit || old == updated:
	case updated:
		c.add(Breaking, at, "Narrowed", "The %s itself is no longer allowed. Objects with it no longer validate.", name)
	default:
		c.add(Compatible, at, "Widened", "The %s itself is now allowed.", name)
	}
}

func (c *comparison) multiple(at string, old, updated *float64) {
	switch {
	case equalNumbers(old, updated):
	case updated == nil:
		c.add(Compatible, at, "Widened", "The value need no longer be a multiple of %s.", number(*old))
	default:
		c.narrowed(at, "The value must now be a multiple of %s.", number(*updated))
	}
}

// rules compares CEL rules.
func (c *comparison) rules(at string, old, updated *props) {
	texts := func(rules apiextensionsv1.ValidationRules) (list []string) {
		for _, rule := range rules {
			list = append(list, rule.Rule)
		}
		return list
	}
	before, after := texts(old.XValidations), texts(updated.XValidations)
	for _, rule := range updated.XValidations {
		if slices.Contains(before, rule.Rule) {
			continue
		}
		says := ""
		if rule.Message != "" {
			says = " (" + rule.Message + ")"
		}
		if strings.Contains(rule.Rule, "oldSelf") {
			c.add(Risky, at, "RuleAdded", "Updates must satisfy the new rule %q%s. Existing objects stay valid; "+
				"updates that break it are refused.", rule.Rule, says)
		} else {
			c.add(Breaking, at, "RuleAdded", "Values must satisfy the new rule %q%s. Objects that break it no longer validate.", rule.Rule, says)
		}
	}
	for _, rule := range without(before, after) {
		c.add(Compatible, at, "RuleRemoved", "The rule %q is removed.", rule)
	}
}

func (c *comparison) defaults(at string, old, updated *props) {
	text := func(value *apiextensionsv1.JSON) string {
		if value == nil {
			return ""
		}
		var parsed any
		if err := json.Unmarshal(value.Raw, &parsed); err != nil {
			return string(value.Raw)
		}
		raw, err := json.Marshal(parsed)
		if err != nil {
			return string(value.Raw)
		}
		return string(raw)
	}
	switch before, after := text(old.Default), text(updated.Default); {
	case before == after:
	case before == "":
		c.add(Risky, at, "DefaultAdded", "The default %s is new. Objects without the property get it at the next read, "+
			"and may behave differently.", after)
	case after == "":
		c.add(Risky, at, "DefaultRemoved", "The default %s is removed. Objects that were written since it existed keep the value; "+
			"others and new ones are without it.", before)
	default:
		c.add(Risky, at, "DefaultChanged", "The default changes from %s to %s. Objects that were written with the old default keep it; "+
			"new ones differ from them.", before, after)
	}
}

// lists compares how server-side apply merges a property.
func (c *comparison) lists(at string, old, updated *props) {
	kind := func(value *string) string {
		if value == nil {
			return "atomic"
		}
		return *value
	}
	if old.Type == "array" {
		switch before, after := kind(old.XListType), kind(updated.XListType); {
		case before != after && after == "atomic":
			c.add(Risky, at, "ListTypeChanged", "The list type changes from %s to atomic. Server-side apply replaces the list as a whole, "+
				"and takes elements of other field managers away.", before)
		case before != after:
			c.add(Breaking, at, "ListTypeChanged", "The list type changes from %s to %s. Objects with duplicates no longer validate, "+
				"and server-side apply no longer removes elements that it does not own.", before, after)
		case !slices.Equal(old.XListMapKeys, updated.XListMapKeys):
			c.add(Breaking, at, "ListKeysChanged", "The keys of the list change from %s to %s. Objects with duplicates no longer validate, "+
				"and server-side apply can no longer match elements that it owns.", quoted(old.XListMapKeys), quoted(updated.XListMapKeys))
		}
	}
	mapKind := func(value *string) string {
		if value == nil {
			return "granular"
		}
		return *value
	}
	if before, after := mapKind(old.XMapType), mapKind(updated.XMapType); before != after {
		c.add(Risky, at, "MapTypeChanged", "The map type changes from %s to %s. Server-side apply merges the object differently.", before, after)
	}
}
