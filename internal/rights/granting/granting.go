// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package granting reads which rights a project grants to its operator: by the roles that its manifests bind, by a Helm chart,
// or by markers in its source code.
package granting

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/rights"
)

// What to compare with.
const (
	// Auto is the first of the others that grants anything.
	Auto    = "auto"
	Role    = "role"
	Markers = "markers"
	Chart   = "chart"
	Nothing = "none"
)

// defaultNamespace is where an operator runs whose manifests do not say where. A rehearsal puts its account there.
const defaultNamespace = "default"

// Grants holds the rights that a project grants.
type Grants struct {
	// Identity is nil if the manifests have no service account for the operator.
	Identity *project.Identity
	// Markers are those of the operator, and Others are for roles that it does not have.
	Markers, Others []rights.Marker
	// Granted comes from the requested source, and Roles are always the rules of the roles that the manifests bind.
	Granted, Roles rights.Granted
	// Options come from the project.
	Options rights.Options
}

// Read reads the granted rights of a project, from one source or from the first that has any.
func Read(ctx context.Context, found *project.Project, against string) (*Grants, error) {
	g := &Grants{}
	markers, err := rights.ReadMarkers(found.Dir)
	if err != nil {
		return nil, err
	}
	definitions, err := found.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	g.Options.ClusterScoped = scopesOf(definitions)
	manifests, err := found.Manifests(ctx)
	if err != nil {
		return nil, err
	}
	if g.Identity = project.IdentityIn(manifests); g.Identity != nil {
		g.Options.Namespace = g.Identity.Namespace
		if g.Roles, err = rights.FromObjects(g.Identity.Objects); err != nil {
			return nil, err
		}
		rights.Resettle(markers, manifests, g.Identity.Namespace)
	}
	g.Markers, g.Others = rights.OwnMarkers(markers, g.Roles)
	if g.Granted, err = g.grantedBy(found, against); err != nil {
		return nil, err
	}
	return g, nil
}

// grantedBy reads the rules from one source, or from the first that has any.
func (g *Grants) grantedBy(found *project.Project, against string) (granted rights.Granted, err error) {
	wants := func(source string) bool {
		return granted.Source == "" && (against == source || against == Auto)
	}
	var notes []string
	take := func(found rights.Granted) {
		notes = append(notes, found.Notes...)
		granted = found
	}
	if wants(Role) {
		take(g.Roles)
	}
	if wants(Chart) {
		namespace := cmp.Or(g.Options.Namespace, defaultNamespace)
		charts, err := rights.ReadCharts(found.Dir, namespace)
		if err != nil {
			return granted, err
		}
		for _, chart := range charts {
			if granted.Source == "" {
				take(chart.Granted)
				if granted.Source != "" && g.Options.Namespace == "" {
					granted.Assumed = namespace
				}
			} else if chart.Source != "" {
				notes = append(notes, chart.Source+" is not compared: the project has several charts")
			}
		}
	}
	if wants(Markers) {
		asked := rights.FromMarkers(g.Markers)
		asked.Notes = append(asked.Notes, rights.NotesOn(g.Others)...)
		take(asked)
	}
	granted.Notes = notes
	return granted, nil
}

// scopesOf reports which of the project's custom resources are cluster-scoped.
func scopesOf(definitions []*unstructured.Unstructured) map[schema.GroupResource]bool {
	scopes := map[schema.GroupResource]bool{}
	for _, definition := range definitions {
		spec := crdspec.Of(definition)
		scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
		scopes[schema.GroupResource{Group: spec.Group, Resource: spec.Plural}] = scope == "Cluster"
	}
	return scopes
}
