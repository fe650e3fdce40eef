// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package crddiff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Severity is the effect of a difference on existing objects and clients.
type Severity string

const (
	// Breaking differences lose data, make valid objects invalid, or take something away that clients use.
	Breaking Severity = "breaking"
	// Risky differences may do so, depending on the objects and the clients, or change behavior.
	Risky Severity = "risky"
	// Compatible differences need no attention.
	Compatible Severity = "compatible"
)

// rank returns the place of a severity in reports, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Breaking, Risky, Compatible}, s) }

// Difference is one difference between two releases of a CRD.
type Difference struct {
	// CRD is the name of the definition.
	CRD string `json:"crd"`
	// Version is the version of the API, "v1 -> v2" between the schemas of two storage versions, or empty if the
	// difference concerns all versions.
	Version string `json:"version,omitempty"`
	// Path is the path of the property, such as "spec.ports[*].port", or empty.
	Path     string   `json:"path,omitempty"`
	Severity Severity `json:"severity"`
	// Reason is a word for programs, such as PropertyRemoved.
	Reason string `json:"reason"`
	// Message describes the change and what it means for existing objects.
	Message string `json:"message"`
}

// comparison collects the differences of one CRD.
type comparison struct {
	crd, version string
	found        []Difference
}

func (c *comparison) add(severity Severity, path, reason, format string, args ...any) {
	c.found = append(c.found, Difference{
		CRD: c.crd, Version: c.version, Path: path, Severity: severity, Reason: reason, Message: fmt.Sprintf(format, args...),
	})
}

// Compare returns how new definitions differ from old ones: the worst first, then by CRD, version and path. Old
// definitions that come from a cluster have a status, from which Compare learns the versions that objects are stored in.
func Compare(old, updated []*apiextensionsv1.CustomResourceDefinition) []Difference {
	before, after := byName(old), byName(updated)
	var found []Difference
	for _, name := range slices.Sorted(maps.Keys(before)) {
		c := &comparison{crd: name}
		if definition, has := after[name]; has {
			c.definition(before[name], definition)
		} else {
			c.add(Breaking, "", "CRDRemoved", "The CRD is removed. If the upgrade deletes it, all of its objects are deleted; "+
				"if not, nothing reconciles them.")
		}
		found = append(found, c.found...)
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, has := before[name]; !has {
			c := &comparison{crd: name}
			c.add(Compatible, "", "CRDAdded", "The CRD is new.")
			found = append(found, c.found...)
		}
	}
	slices.SortStableFunc(found, func(a, b Difference) int {
		return cmp.Or(
			cmp.Compare(a.Severity.rank(), b.Severity.rank()), cmp.Compare(a.CRD, b.CRD),
			cmp.Compare(a.Version, b.Version), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason),
		)
	})
	return found
}

func byName(definitions []*apiextensionsv1.CustomResourceDefinition) map[string]*apiextensionsv1.CustomResourceDefinition {
	named := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, definition := range definitions {
		// Manifests have no defaults yet, and the API server sets those of conversion and names.
		definition = definition.DeepCopy()
		apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(definition)
		named[definition.Name] = definition
	}
	return named
}

// definition compares what all versions of a CRD share, and then the versions.
func (c *comparison) definition(old, updated *apiextensionsv1.CustomResourceDefinition) {
	if old.Spec.Scope != updated.Spec.Scope {
		c.add(Breaking, "", "ScopeChanged", "The scope changes from %s to %s. The API server refuses this: "+
			"the CRD must be deleted and recreated, which deletes all of its objects.", old.Spec.Scope, updated.Spec.Scope)
	}
	c.names(old.Spec.Names, updated.Spec.Names)
	if old.Spec.PreserveUnknownFields && !updated.Spec.PreserveUnknownFields {
		c.add(Breaking, "", "UnknownFieldsPruned", "Unknown fields are no longer preserved. "+
			"Fields of existing objects that are not in the schema are dropped.")
	}
	c.conversion(old.Spec.Conversion, updated.Spec.Conversion)
	c.versions(old, updated)
}

func (c *comparison) names(old, updated apiextensionsv1.CustomResourceDefinitionNames) {
	if old.Kind != updated.Kind {
		c.add(Breaking, "", "KindChanged", "The kind changes from %s to %s. The API server refuses this: "+
			"the CRD must be deleted and recreated, which deletes all of its objects.", old.Kind, updated.Kind)
	}
	if old.ListKind != updated.ListKind {
		c.add(Risky, "", "NamesChanged", "The kind of lists changes from %s to %s. Clients that decode lists by their kind fail.",
			old.ListKind, updated.ListKind)
	}
	if old.Singular != updated.Singular {
		c.add(Risky, "", "NamesChanged", "The singular name changes from %q to %q. Commands with the old name fail.", old.Singular, updated.Singular)
	}
	c.nameList("Short names", old.ShortNames, updated.ShortNames)
	c.nameList("Categories", old.Categories, updated.Categories)
}

func (c *comparison) nameList(what string, old, updated []string) {
	if gone := without(old, updated); len(gone) > 0 {
		c.add(Risky, "", "NamesChanged", "%s are removed: %s. Commands that use them fail.", what, quoted(gone))
	}
	if more := without(updated, old); len(more) > 0 {
		c.add(Compatible, "", "NamesChanged", "%s are added: %s.", what, quoted(more))
	}
}

// without returns the strings of a list that another one does not have.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return slices.Contains(other, one) })
}

func quoted(list []string) string {
	var text []string
	for _, one := range list {
		text = append(text, fmt.Sprintf("%q", one))
	}
	return strings.Join(text, ", ")
}

func (c *comparison) conversion(old, updated *apiextensionsv1.CustomResourceConversion) {
	strategy := func(conversion *apiextensionsv1.CustomResourceConversion) apiextensionsv1.ConversionStrategyType {
		if conversion == nil {
			return apiextensionsv1.NoneConverter
		}
		return conversion.Strategy
	}
	before, after := strategy(old), strategy(updated)
	switch {
	case before != after && after == apiextensionsv1.WebhookConverter:
		c.add(Risky, "", "ConversionChanged", "Conversion changes from %s to %s. Objects that are stored in another version than "+
			"requested cannot be read or written while the webhook does not answer.", before, after)
	case before != after:
		c.add(Breaking, "", "ConversionChanged", "Conversion changes from %s to %s. Objects that are stored in another version than "+
			"requested only get another apiVersion, and lose the fields that this version does not have.", before, after)
	case after == apiextensionsv1.WebhookConverter && old.Webhook != nil && updated.Webhook != nil:
		if !slices.Equal(old.Webhook.ConversionReviewVersions, updated.Webhook.ConversionReviewVersions) || endpoint(old.Webhook) != endpoint(updated.Webhook) {
			c.add(Risky, "", "ConversionChanged", "The conversion webhook changes from %s to %s. Objects that are stored in another version "+
				"than requested cannot be read or written while the new one does not answer.", endpoint(old.Webhook), endpoint(updated.Webhook))
		}
	}
}

// endpoint returns where a conversion webhook is called.
func endpoint(webhook *apiextensionsv1.WebhookConversion) string {
	config := webhook.ClientConfig
	switch {
	case config == nil:
		return "no endpoint"
	case config.URL != nil:
		return *config.URL
	case config.Service != nil:
		path, port := "/", int32(443)
		if config.Service.Path != nil {
			path = *config.Service.Path
		}
		if config.Service.Port != nil {
			port = *config.Service.Port
		}
		return fmt.Sprintf("Service %s/%s:%d%s", config.Service.Namespace, config.Service.Name, port, path)
	default:
		return "no endpoint"
	}
}
