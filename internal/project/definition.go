// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/gocommand"
)

// Wanted is a kind that an operator needs. Either its name or that of its resource is known.
type Wanted struct{ Group, Kind, Resource string }

func (w Wanted) String() string {
	if w.Kind != "" {
		return "kind " + w.Kind + " of " + w.Group
	}
	return "resource " + w.Resource + " of " + w.Group
}

func (w Wanted) isDefinedBy(definition *unstructured.Unstructured) bool {
	kind := crdspec.Of(definition)
	return kind.Group == w.Group && (w.Kind == "" || kind.Kind == w.Kind) && (w.Resource == "" || kind.Plural == w.Resource)
}

// DefinitionOf looks for the definition of a kind that is no part of the project's manifests: first in all of the project's
// folders, where it may be for tests, and then in those of the modules that the operator is built from. The place says where
// it was, for people.
func (p *Project) DefinitionOf(ctx context.Context, wanted Wanted, main string, env []string) (definition *unstructured.Unstructured, place string) {
	if own := bestIn(p, []string{"."}, wanted); own != nil {
		return withoutInstallation(own.Unstructured), own.file
	}
	output, err := gocommand.Command(ctx, p.Dir, env, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", main).Output()
	if err != nil {
		return nil, "" // the build says why
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		path, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found || seen[dir] || dir == "" {
			continue
		}
		seen[dir] = true
		module := &Project{Dir: dir}
		if one := bestIn(module, module.existing(usualFolders...), wanted); one != nil {
			return withoutInstallation(one.Unstructured), "module " + path
		}
	}
	return nil, ""
}

// bestIn is the definition in a project's folders that can do most; nil if there is none for a server.
func bestIn(p *Project, folders []string, wanted Wanted) *found {
	all := definitionsBelow(p, folders, wanted.isDefinedBy)
	if len(all) == 0 {
		return nil
	}
	best := slices.MaxFunc(all, func(a, b found) int { return capability(a) - capability(b) })
	return &best
}
