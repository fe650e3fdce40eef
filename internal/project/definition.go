// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/crdspec"
	"github.com/opdock/opdock/internal/gocommand"
)

// Wanted is a kind that an operator needs. Its name, the name of its resource, or only its version is known.
type Wanted struct{ Group, Kind, Resource, Version string }

func (w Wanted) String() string {
	switch {
	case w.Kind != "":
		return "kind " + w.Kind + " of " + w.Group
	case w.Resource != "":
		return "resource " + w.Resource + " of " + w.Group
	}
	return "the kinds of " + w.Group + "/" + w.Version
}

func (w Wanted) isDefinedBy(definition *unstructured.Unstructured) bool {
	kind := crdspec.Of(definition)
	return kind.Group == w.Group && (w.Kind == "" || kind.Kind == w.Kind) && (w.Resource == "" || kind.Plural == w.Resource) &&
		(w.Version == "" || slices.Contains(kind.ServedVersions(), schema.GroupVersion{Group: w.Group, Version: w.Version}))
}

// Definition is the definition of a kind.
type Definition struct {
	*unstructured.Unstructured
	Place string // where it was found, for people
}

// DefinitionsOf finds the definition of a kind that is not in the project's manifests: first in all folders of the
// project, where it may be for tests, and then in the modules that the operator is built from. If only the version is
// known, it returns the definitions of all its kinds.
func (p *Project) DefinitionsOf(ctx context.Context, wanted Wanted, main string, env []string) []Definition {
	if own := bestIn(p, []string{"."}, wanted); len(own) > 0 {
		return definitionsOf(own, "")
	}
	output, err := gocommand.Command(ctx, p.Dir, env, "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", main).Output()
	if err != nil {
		return nil // the build says why
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(output)) {
		path, dir, found := strings.Cut(strings.TrimSpace(line), "\t")
		if !found || seen[dir] || dir == "" {
			continue
		}
		seen[dir] = true
		module := &Project{Dir: dir}
		if best := bestIn(module, module.existing(usualFolders...), wanted); len(best) > 0 {
			return definitionsOf(best, "module "+path)
		}
	}
	return nil
}

// bestIn returns, for each kind, the definition in a project's folders that can do most; none if there is none for a server.
func bestIn(p *Project, folders []string, wanted Wanted) (best []found) {
	for _, one := range definitionsBelow(p, folders, wanted.isDefinedBy) {
		same := func(other found) bool {
			return crdspec.Of(other.Unstructured).GroupKind() == crdspec.Of(one.Unstructured).GroupKind()
		}
		switch i := slices.IndexFunc(best, same); {
		case i < 0:
			best = append(best, one)
		case capability(one) > capability(best[i]):
			best[i] = one
		}
	}
	return best
}

// definitionsOf names the file of each if the place is empty.
func definitionsOf(all []found, place string) (definitions []Definition) {
	for _, one := range all {
		definitions = append(definitions, Definition{withoutInstallation(one.Unstructured), cmp.Or(place, one.file)})
	}
	return definitions
}
