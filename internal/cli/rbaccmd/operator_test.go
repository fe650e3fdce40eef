// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package rbaccmd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
)

// TestWithRoles replaces the rights of an operator, and leaves the roles that it may bind to others, its own included.
func TestWithRoles(t *testing.T) {
	object := func(kind, name string) *unstructured.Unstructured {
		version := "rbac.authorization.k8s.io/v1"
		if kind == "ServiceAccount" {
			version = "v1"
		}
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}}}
	}
	names := func(objects []*unstructured.Unstructured) string {
		var all []string
		for _, one := range objects {
			all = append(all, one.GetKind()+" "+one.GetName())
		}
		return strings.Join(all, ", ")
	}
	identity := &project.Identity{
		Objects: []*unstructured.Unstructured{
			object("ServiceAccount", "captain"), object("ClusterRole", "old"), object("ClusterRole", "proposed"), object("ClusterRoleBinding", "old"),
		},
		Others: []*unstructured.Unstructured{object("ClusterRole", "crew"), object("ClusterRole", "proposed"), object("Role", "proposed")},
	}
	changed := withRoles(identity, []*unstructured.Unstructured{object("ClusterRole", "proposed"), object("ClusterRoleBinding", "proposed")})
	if got := names(changed.Objects); got != "ServiceAccount captain, ClusterRole proposed, ClusterRoleBinding proposed" {
		t.Errorf("the objects are %s", got)
	}
	// A role of the manifests must not replace the proposed one.
	if got := names(changed.Others); got != "ClusterRole old, ClusterRole crew, Role proposed" {
		t.Errorf("the others are %s", got)
	}
	if len(identity.Others) != 3 || len(identity.Objects) != 4 {
		t.Errorf("the identity has changed: %+v", identity)
	}
}
