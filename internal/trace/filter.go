// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"slices"
	"strings"

	"github.com/opdock/opdock/internal/lens"
)

// Filter selects events. Fields that are empty do not matter.
type Filter struct {
	// Verbs are verbs of RBAC, or apply.
	Verbs []string
	// Resources are resources in the plural, with or without a group and a subresource: deployments, deployments.apps,
	// deployments.apps/status.
	Resources       []string
	Namespace, Name string
}

// Wants reports whether an event is selected. Events that are about no object are selected only without a
// filter.
func (f *Filter) Wants(e *lens.Event) bool {
	switch {
	case e.Request != nil:
		return (len(f.Verbs) == 0 || slices.Contains(f.Verbs, e.Request.Verb)) && f.wants(e.Request.Resource)
	case e.Delivery != nil:
		place := e.Delivery.Resource
		if object := e.Delivery.Object; object != nil {
			place.Namespace, place.Name = object.Namespace, object.Name
		}
		return (len(f.Verbs) == 0 || slices.Contains(f.Verbs, "watch")) && f.wants(place)
	case e.Reconcile != nil:
		return len(f.Verbs) == 0 && len(f.Resources) == 0 && f.wants(lens.Resource{Namespace: e.Reconcile.Namespace, Name: e.Reconcile.Name})
	}
	return f.isEmpty()
}

// IsSet reports whether there is a filter.
func (f *Filter) IsSet() bool { return !f.isEmpty() }

func (f *Filter) isEmpty() bool {
	return len(f.Verbs) == 0 && len(f.Resources) == 0 && f.Namespace == "" && f.Name == ""
}

func (f *Filter) wants(place lens.Resource) bool {
	return (f.Namespace == "" || f.Namespace == place.Namespace) && (f.Name == "" || f.Name == place.Name) &&
		(len(f.Resources) == 0 || slices.ContainsFunc(f.Resources, func(one string) bool { return isResource(one, place) }))
}

// isResource compares a resource as a user writes it.
func isResource(given string, place lens.Resource) bool {
	// The group comes before the subresource, as in the printed lines.
	resource, subresource, hasSubresource := strings.Cut(strings.ToLower(given), "/")
	resource, group, hasGroup := strings.Cut(resource, ".")
	return resource == place.Resource && (!hasGroup || group == place.Group) && (!hasSubresource || subresource == place.Subresource)
}
