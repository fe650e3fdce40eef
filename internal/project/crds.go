// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/crdspec"
)

const (
	extensionsGroup = "apiextensions.k8s.io"
	definitionKind  = "CustomResourceDefinition"
)

// usualFolders are the folders where projects keep manifests, in search order.
var usualFolders = []string{
	"config", "deploy", "artifacts", "manifests", "crds", "crd", "k8s", "kubernetes", "helm", "charts", "chart", "kustomize", "install",
}

// IsCRD reports whether the object is a CustomResourceDefinition.
func IsCRD(object *unstructured.Unstructured) bool {
	return object.GetKind() == definitionKind && object.GroupVersionKind().Group == extensionsGroup
}

// CRDs are the project's definitions: those of the kustomization in config/crd if there is one, and otherwise all that
// are in YAML files of the usual folders. A project without any has none, which is no error.
func (p *Project) CRDs(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.hasKustomization("config/crd") {
		return p.kustomizedCRDs("config/crd")
	}
	all, err := p.readFolders(p.existing(usualFolders...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the CRDs: %w", err)
	}
	return p.chooseCRDs(all)
}

func (p *Project) kustomizedCRDs(folder string) ([]*unstructured.Unstructured, error) {
	objects, err := p.kustomize(folder)
	if err != nil {
		return nil, err
	}
	var definitions []*unstructured.Unstructured
	for _, object := range objects {
		if !IsCRD(object) {
			continue
		}
		definitions = append(definitions, object)
	}
	return definitions, nil
}

// chooseCRDs takes one definition of each name. Projects keep several in order to show the steps to them, or for older
// servers; the one that can do more is meant.
func (p *Project) chooseCRDs(all []found) ([]*unstructured.Unstructured, error) {
	byName := map[string]found{}
	for _, one := range all {
		if !IsCRD(one.Unstructured) {
			continue
		}
		name := one.GetName()
		known, again := byName[name]
		if !again {
			byName[name] = one
			continue
		}
		chosen := known
		if capability(one) > capability(known) {
			chosen = one
		}
		byName[name] = chosen
		if (capability(one) > 0) == (capability(known) > 0) {
			p.warn("CRD %s is defined in %s and in %s; using %s", name, known.file, one.file, chosen.file)
		}
	}
	var definitions []*unstructured.Unstructured
	for _, one := range byName {
		definition, err := p.current(one.Unstructured, one.file)
		if err != nil {
			return nil, fmt.Errorf("reading the CRDs: %w", err)
		}
		definitions = append(definitions, definition)
	}
	slices.SortFunc(definitions, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return definitions, nil
}

// capability orders definitions of one name: 0 for those that no server takes as they are.
func capability(one found) int {
	if one.GroupVersionKind().Version != "v1" {
		return 0
	}
	result := 1
	for _, version := range crdspec.Of(one.Unstructured).Versions {
		if _, has, _ := unstructured.NestedMap(version.Fields, "subresources"); has {
			result++
		}
	}
	return result
}

// ErrNoCRDs is returned where a project's CRDs are needed and it has none.
var ErrNoCRDs = errors.New("the project has no CRDs")

// NoCRDs is ErrNoCRDs with where they were looked for.
func (p *Project) NoCRDs() error {
	looked := p.existing(usualFolders...)
	if len(looked) == 0 {
		return fmt.Errorf("%w: %s has none of the usual directories (%s)",
			ErrNoCRDs, p.Dir, strings.Join(usualFolders[:6], ", "))
	}
	return fmt.Errorf("%w: none found in %s of %s", ErrNoCRDs, strings.Join(looked, ", "), p.Dir)
}
