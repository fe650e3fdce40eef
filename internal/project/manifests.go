// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/crdspec"
)

// kustomizations are the folders that can be the whole project, in the order in which they are looked for.
var kustomizations = []string{"config/default", "deploy/default", "deploy", "manifests", "kustomize", "config"}

// Manifests are all objects that the project consists of on a server: those of the kustomization in config/default or the
// like, or else of the kustomization below the usual folders that has the operator's workload, and otherwise those in YAML files
// of the usual folders, without samples.
func (p *Project) Manifests(ctx context.Context) ([]*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, folder := range kustomizations {
		if p.hasKustomization(folder) {
			return p.kustomize(folder)
		}
	}
	if objects := p.overlaid(); slices.ContainsFunc(objects, IsCRD) {
		return objects, nil
	} else if len(objects) > 0 {
		definitions, err := p.CRDs(ctx)
		return append(definitions, objects...), err
	}
	folders := p.existing(usualFolders...)
	all, err := p.readFolders(folders...)
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	objects, err := p.chooseCRDs(all)
	if err != nil {
		return nil, err
	}
	own := kindsOf(objects)
	seen := map[string]found{}
	for _, one := range all {
		if IsCRD(one.Unstructured) || own[one.GroupVersionKind().GroupKind()] || isForReading(one.file) {
			continue
		}
		key := one.GroupVersionKind().GroupKind().String() + " " + one.GetNamespace() + "/" + one.GetName()
		if first, again := seen[key]; again {
			p.warn("%s %s is defined in %s and in %s; using %s", one.GetKind(), one.GetName(), first.file, one.file, first.file)
			continue
		}
		seen[key] = one
		objects = append(objects, one.Unstructured)
	}
	return objects, nil
}

// isForReading is true for files in folders of examples, which show how the operator is used and are no part of it.
func isForReading(file string) bool {
	return slices.ContainsFunc(strings.Split(path.Dir(file), "/"), func(folder string) bool {
		return slices.Contains([]string{"samples", "sample", "examples", "example", "recipes", "docs", "test", "tests", "e2e"}, folder)
	})
}

func kindsOf(definitions []*unstructured.Unstructured) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for _, definition := range definitions {
		kinds[crdspec.Of(definition).GroupKind()] = true
	}
	return kinds
}

// Samples are objects of the project's kinds to try it with: those in config/samples, through its kustomization if there
// is one, and otherwise those in YAML files of the usual folders and of folders of examples.
func (p *Project) Samples(ctx context.Context) ([]*unstructured.Unstructured, error) {
	const folder = "config/samples"
	if p.hasKustomization(folder) {
		return p.kustomize(folder)
	}
	if p.isFolder(folder) {
		all, err := p.readFolders(folder)
		if err != nil {
			return nil, fmt.Errorf("reading the samples: %w", err)
		}
		return objectsOf(p.firstOfEach(all)), nil
	}
	definitions, err := p.CRDs(ctx)
	if err != nil {
		return nil, err
	}
	own := kindsOf(definitions)
	all, err := p.readFolders(p.existing(usualFolders...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the samples: %w", err)
	}
	examples, err := p.readExamples(p.existing(exampleFolders...)...)
	if err != nil {
		return nil, fmt.Errorf("reading the samples: %w", err)
	}
	all = append(all, examples...)
	return objectsOf(p.firstOfEach(p.chooseSamples(all, own))), nil
}

// firstOfEach takes one object of each name. Projects that show several ways to use a kind often give all of them the same name; on
// a server they would be one object with the fields of all.
func (p *Project) firstOfEach(all []found) []found {
	others := map[string][]found{} // by key; the first of each is the one that is taken
	var keys []string
	chosen := slices.DeleteFunc(all, func(one found) bool {
		key := one.GroupVersionKind().GroupKind().String() + " " + one.GetNamespace() + "/" + one.GetName()
		same := others[key]
		if len(same) == 0 {
			keys = append(keys, key)
		}
		if !slices.ContainsFunc(same, func(other found) bool { return other.file == one.file && other.line == one.line }) {
			others[key] = append(same, one)
		}
		return len(same) > 0
	})
	for _, key := range keys {
		first, more := others[key][0], others[key][1:]
		switch len(more) {
		case 0:
		case 1:
			p.warn("%s %s is a sample in %s and in %s; using %s", first.GetKind(), first.GetName(), first.file, more[0].file, first.file)
		default: // all of them would fill the screen
			p.warn("%d samples have the name %s %s; using the one in %s", 1+len(more), first.GetKind(), first.GetName(), first.file)
		}
	}
	return chosen
}

// companionKinds are what samples refer to: they need it to work.
var companionKinds = []schema.GroupKind{
	{Kind: "Namespace"}, {Kind: "Secret"}, {Kind: "ConfigMap"}, {Kind: "PersistentVolumeClaim"}, {Kind: "Service"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
}

// chooseSamples takes the objects of the project's own kinds, and with them what is in the same file, or of a kind that samples
// refer to and in a folder of examples. What else is in those folders is named.
func (p *Project) chooseSamples(all []found, own map[schema.GroupKind]bool) (chosen []found) {
	withOwn := map[string]bool{} // by file
	for _, one := range all {
		if own[one.GroupVersionKind().GroupKind()] {
			withOwn[one.file] = true
		}
	}
	for _, one := range all {
		kind := one.GroupVersionKind().GroupKind()
		inExamples := isForReading(one.file)
		switch {
		case own[kind]:
			chosen = append(chosen, one)
		case IsCRD(one.Unstructured) || !inExamples || len(withOwn) == 0:
		case withOwn[one.file] || slices.Contains(companionKinds, kind):
			chosen = append(chosen, one)
		default:
			p.warn("%s:%d: %s %s is not applied with the samples; apply it yourself if they need it", one.file, one.line, one.GetKind(), one.GetName())
		}
	}
	// What they refer to first.
	slices.SortStableFunc(chosen, func(a, b found) int {
		return cmp.Compare(btoi(own[a.GroupVersionKind().GroupKind()]), btoi(own[b.GroupVersionKind().GroupKind()]))
	})
	return chosen
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// exampleFolders hold nothing but samples.
var exampleFolders = []string{"examples", "samples", "example", "docs/examples", "docs/samples"}

// sampleFolders are where samples are looked for that have no folder of their own.
func sampleFolders() []string {
	return append(slices.Clone(usualFolders), exampleFolders...)
}

func objectsOf(all []found) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(all))
	for _, one := range all {
		objects = append(objects, one.Unstructured)
	}
	return objects
}

// Folders are those that the functions of this package read, relative to the project's folder: their answers change only
// if something in these does.
type Folders struct {
	CRDs, Manifests, RBAC, Webhooks, Samples []string
}

// Folders are those that there are.
func (p *Project) Folders() Folders {
	usual := p.existing(usualFolders...)
	or := func(names ...string) []string {
		if exist := p.existing(names...); len(exist) > 0 {
			return exist
		}
		return usual
	}
	samples := p.existing("config/samples")
	if len(samples) == 0 {
		samples = p.existing(sampleFolders()...)
	}
	return Folders{
		CRDs: or("config/crd"), Manifests: usual, RBAC: or("config/rbac"), Webhooks: or("config/webhook"), Samples: samples,
	}
}
