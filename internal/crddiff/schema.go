// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type props = apiextensionsv1.JSONSchemaProps

// child returns the path of a property of an object.
func child(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// inStatus reports whether the operator, not a user, writes a property.
func inStatus(path string) bool { return path == "status" || strings.HasPrefix(path, "status.") }

func isTrue(value *bool) bool { return value != nil && *value }

// schema compares the schemas of a property and of everything below it.
func (c *comparison) schema(at string, old, updated *props) {
	if !c.types(at, old, updated) {
		return // What is below two types that have nothing in common cannot be compared.
	}
	c.values(at, old, updated)
	c.rules(at, old, updated)
	c.defaults(at, old, updated)
	c.lists(at, old, updated)
	c.unknown(at, old, updated)
	c.properties(at, old, updated)
	if before, after := items(old), items(updated); before != nil && after != nil {
		c.schema(at+"[*]", before, after)
	}
	if before, after := entries(old), entries(updated); before != nil && after != nil {
		c.schema(at+"[*]", before, after)
	}
}

// items returns the schema of the elements of a list.
func items(schema *props) *props {
	if schema.Items == nil {
		return nil
	}
	return schema.Items.Schema
}

// entries returns the schema of the values of a map.
func entries(schema *props) *props {
	if schema.AdditionalProperties == nil {
		return nil
	}
	return schema.AdditionalProperties.Schema
}

// typeOf returns the type of a property as users know it.
func typeOf(schema *props) string {
	if schema.XIntOrString {
		return "int-or-string"
	}
	return schema.Type
}

// types compares the types of a property, and reports whether they have values in common.
func (c *comparison) types(at string, old, updated *props) bool {
	before, after := typeOf(old), typeOf(updated)
	switch {
	case before == after:
	case after == "":
		c.add(Compatible, at, "TypeWidened", "The type changes from %s to any.", before)
	case before == "":
		c.add(Breaking, at, "TypeChanged", "The type is now %s, where any was accepted. "+
			"Objects with a value of another type no longer validate.", after)
	case after == "int-or-string" && (before == "integer" || before == "string"), before == "integer" && after == "number":
		c.add(Compatible, at, "TypeWidened", "The type changes from %s to %s. Existing values stay valid; clients may meet new ones.", before, after)
	default:
		c.add(Breaking, at, "TypeChanged", "The type changes from %s to %s. Objects that set the property no longer validate.", before, after)
		return false
	}
	if old.Format != updated.Format {
		c.add(Risky, at, "FormatChanged", "The format changes from %s to %s. Values that do not have it no longer validate.",
			orNone(old.Format), orNone(updated.Format))
	}
	if old.Nullable && !updated.Nullable {
		c.add(Risky, at, "NullableRemoved", "Null is no longer a value. The API server drops it when it reads an object; "+
			"where a value is required, such objects no longer validate.")
	} else if !old.Nullable && updated.Nullable {
		c.add(Compatible, at, "NullableAdded", "Null is now a value. Clients may meet it.")
	}
	if old.XEmbeddedResource != updated.XEmbeddedResource {
		c.add(Risky, at, "EmbeddedResourceChanged", "The property %s an embedded object, with validated metadata.",
			map[bool]string{true: "is now", false: "is no longer"}[updated.XEmbeddedResource])
	}
	return true
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// properties compares the fields of an object.
func (c *comparison) properties(at string, old, updated *props) {
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		before := old.Properties[name]
		after, has := updated.Properties[name]
		if !has {
			c.propertyRemoved(child(at, name), updated)
			continue
		}
		c.required(child(at, name), &after, slices.Contains(old.Required, name), slices.Contains(updated.Required, name))
		c.schema(child(at, name), &before, &after)
	}
	for _, name := range slices.Sorted(maps.Keys(updated.Properties)) {
		if _, has := old.Properties[name]; has {
			continue
		}
		after := updated.Properties[name]
		c.propertyAdded(child(at, name), old, &after, slices.Contains(updated.Required, name))
	}
	// A required property need not be among the properties, in a schema that preserves unknown fields.
	for _, name := range without(updated.Required, old.Required) {
		if _, has := updated.Properties[name]; !has {
			c.required(child(at, name), &props{}, false, true)
		}
	}
}

func (c *comparison) propertyRemoved(at string, around *props) {
	switch {
	case isTrue(around.XPreserveUnknownFields):
		c.add(Risky, at, "PropertyRemoved", "The property is removed from the schema. Existing values are kept, but no longer validated.")
	case entries(around) != nil:
		c.add(Risky, at, "PropertyRemoved", "The property is removed and becomes an entry of a map. "+
			"Existing values are kept if they have the type of its entries.")
	case inStatus(at):
		c.add(Risky, at, "PropertyRemoved", "The property is removed. Existing values are dropped from all objects. "+
			"The operator writes the status, so they matter only to clients that read them.")
	default:
		c.add(Breaking, at, "PropertyRemoved", "The property is removed. Existing values are dropped from all objects, "+
			"at the next read, and are lost at the next write.")
	}
}

func (c *comparison) propertyAdded(at string, around, after *props, required bool) {
	switch {
	case required && after.Default == nil:
		c.add(Breaking, at, "PropertyRequired", "The property is new and required. No existing object has it, so none validates.")
	case after.Default != nil:
		c.add(Risky, at, "DefaultAdded", "The property is new, with the default %s. "+
			"All existing objects get it at the next read.", after.Default.Raw)
	case isTrue(around.XPreserveUnknownFields) || entries(around) != nil:
		c.add(Risky, at, "PropertyAdded", "The property is new in the schema. Objects could have it before, with any value; "+
			"those that do not match no longer validate.")
	default:
		c.add(Compatible, at, "PropertyAdded", "The property is new and optional.")
	}
}

func (c *comparison) required(at string, after *props, before, now bool) {
	switch {
	case !before && now && after.Default != nil:
		c.add(Risky, at, "PropertyRequired", "The property is now required, and has the default %s. "+
			"Objects without it get the default at the next read.", after.Default.Raw)
	case !before && now:
		c.add(Breaking, at, "PropertyRequired", "The property is now required. Objects without it no longer validate.")
	case before && !now:
		c.add(Compatible, at, "PropertyOptional", "The property is now optional. Clients may meet objects without it.")
	}
}

// unknown compares what happens to fields that the schema does not list.
func (c *comparison) unknown(at string, old, updated *props) {
	switch before, after := isTrue(old.XPreserveUnknownFields), isTrue(updated.XPreserveUnknownFields); {
	case before && !after:
		c.add(Breaking, at, "UnknownFieldsPruned", "Unknown fields are no longer preserved. Fields of existing objects that are not "+
			"in the schema are dropped.")
	case !before && after:
		c.add(Compatible, at, "UnknownFieldsPreserved", "Unknown fields are now preserved. Misspelled ones are no longer dropped.")
	}
	open := func(schema *props) bool {
		return schema.AdditionalProperties != nil && (schema.AdditionalProperties.Allows || schema.AdditionalProperties.Schema != nil)
	}
	switch {
	case open(old) && !open(updated) && !isTrue(updated.XPreserveUnknownFields):
		c.add(Breaking, at, "MapClosed", "The map no longer takes any key. Entries of existing objects that are not in the schema are dropped.")
	case !open(old) && open(updated):
		c.add(Compatible, at, "MapOpened", "The object now takes any key.")
	}
}
