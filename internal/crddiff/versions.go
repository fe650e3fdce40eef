// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type version = apiextensionsv1.CustomResourceDefinitionVersion

func find(definition *apiextensionsv1.CustomResourceDefinition, name string) *version {
	for at := range definition.Spec.Versions {
		if definition.Spec.Versions[at].Name == name {
			return &definition.Spec.Versions[at]
		}
	}
	return nil
}

// storage returns the version that objects are stored in, or nil.
func storage(definition *apiextensionsv1.CustomResourceDefinition) *version {
	for at := range definition.Spec.Versions {
		if definition.Spec.Versions[at].Storage {
			return &definition.Spec.Versions[at]
		}
	}
	return nil
}

func schemaOf(v *version) *apiextensionsv1.JSONSchemaProps {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		preserve := true
		return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	}
	return v.Schema.OpenAPIV3Schema
}

// converts reports whether a webhook converts between versions.
func converts(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return definition.Spec.Conversion != nil && definition.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

func (c *comparison) versions(old, updated *apiextensionsv1.CustomResourceDefinition) {
	for at := range old.Spec.Versions {
		before := &old.Spec.Versions[at]
		c.version = before.Name
		if after := find(updated, before.Name); after != nil {
			c.sameVersion(before, after)
		} else {
			c.removed(old, before)
		}
	}
	for _, after := range updated.Spec.Versions {
		if c.version = after.Name; find(old, after.Name) == nil {
			c.add(Compatible, "", "VersionAdded", "The version is new.")
		}
	}
	c.version = ""
	c.storage(old, updated)
}

// storedIn reports whether objects may be stored in a version.
func storedIn(definition *apiextensionsv1.CustomResourceDefinition, v *version) bool {
	return v.Storage || slices.Contains(definition.Status.StoredVersions, v.Name)
}

func (c *comparison) removed(old *apiextensionsv1.CustomResourceDefinition, before *version) {
	switch {
	case storedIn(old, before):
		c.add(Breaking, "", "VersionRemoved", "The version is removed, but objects may be stored in it. The API server refuses the CRD "+
			"until all objects are rewritten in another version and %s is removed from status.storedVersions.", before.Name)
	case before.Served:
		c.add(Breaking, "", "VersionRemoved", "The version is removed. Clients and manifests that use it fail.")
	default:
		c.add(Compatible, "", "VersionRemoved", "The version is removed. It was not served, and no objects are stored in it.")
	}
}

func (c *comparison) storage(old, updated *apiextensionsv1.CustomResourceDefinition) {
	before, after := storage(old), storage(updated)
	if before == nil || after == nil || before.Name == after.Name {
		return
	}
	c.add(Risky, "", "StorageVersionChanged", "The storage version changes from %s to %s. Existing objects stay stored in %s until "+
		"they are written again, and a release that does not have %s cannot read objects written from now on.",
		before.Name, after.Name, before.Name, after.Name)
	if converts(updated) {
		return
	}
	// Without a webhook, an object stored in one version is read with the schema of the other.
	c.version = before.Name + " -> " + after.Name
	c.schema("", schemaOf(before), schemaOf(after))
	c.version = ""
}

// sameVersion compares a version that both releases have.
func (c *comparison) sameVersion(old, updated *version) {
	switch {
	case old.Served && !updated.Served:
		c.add(Breaking, "", "VersionNotServed", "The version is no longer served. Clients and manifests that use it fail. "+
			"Objects stored in it stay readable in other versions.")
	case !old.Served && updated.Served:
		c.add(Compatible, "", "VersionServed", "The version is served again.")
	}
	if !old.Deprecated && updated.Deprecated {
		c.add(Compatible, "", "VersionDeprecated", "The version is deprecated. Clients that use it get a warning.")
	}
	c.subresources(subresourcesOf(old), subresourcesOf(updated))
	c.selectable(old.SelectableFields, updated.SelectableFields)
	if !reflect.DeepEqual(old.AdditionalPrinterColumns, updated.AdditionalPrinterColumns) {
		c.add(Compatible, "", "PrinterColumnsChanged", "The columns that kubectl get shows change. Objects are not affected.")
	}
	c.schema("", schemaOf(old), schemaOf(updated))
}

func subresourcesOf(v *version) apiextensionsv1.CustomResourceSubresources {
	if v.Subresources == nil {
		return apiextensionsv1.CustomResourceSubresources{}
	}
	return *v.Subresources
}

func (c *comparison) subresources(old, updated apiextensionsv1.CustomResourceSubresources) {
	switch {
	case old.Status == nil && updated.Status != nil:
		c.add(Risky, "", "SubresourceAdded", "The status subresource is new. A client that writes the status by updating the object "+
			"no longer changes it, and gets no error.")
	case old.Status != nil && updated.Status == nil:
		c.add(Breaking, "", "SubresourceRemoved", "The status subresource is removed. Controllers that update it get an error, "+
			"and anyone who may update the object can set its status.")
	}
	switch {
	case old.Scale == nil && updated.Scale != nil:
		c.add(Compatible, "", "SubresourceAdded", "The scale subresource is new.")
	case old.Scale != nil && updated.Scale == nil:
		c.add(Breaking, "", "SubresourceRemoved", "The scale subresource is removed. kubectl scale and autoscalers fail.")
	case old.Scale != nil && !reflect.DeepEqual(old.Scale, updated.Scale):
		c.add(Risky, "", "SubresourceChanged", "The paths of the scale subresource change. Autoscalers and kubectl scale read and write other fields.")
	}
}

func (c *comparison) selectable(old, updated []apiextensionsv1.SelectableField) {
	paths := func(fields []apiextensionsv1.SelectableField) (list []string) {
		for _, field := range fields {
			list = append(list, field.JSONPath)
		}
		return list
	}
	if gone := without(paths(old), paths(updated)); len(gone) > 0 {
		c.add(Breaking, "", "SelectableFieldRemoved", "Objects can no longer be selected by %s. Clients that do so fail.", quoted(gone))
	}
	if more := without(paths(updated), paths(old)); len(more) > 0 {
		c.add(Compatible, "", "SelectableFieldAdded", "Objects can be selected by %s.", quoted(more))
	}
}
