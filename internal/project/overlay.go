// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// overlaid are the objects of a kustomization somewhere below the usual folders, such as manifests/overlays/standalone, that has
// the operator's workload. Without it, names, namespaces and patches of the project would be missing. They are nil if there is none.
func (p *Project) overlaid() []*unstructured.Unstructured {
	type overlay struct {
		folder  string
		objects []*unstructured.Unstructured
		rank    int
		// warnings are about this one. Those about kustomizations that are not used do not matter.
		warnings []string
	}
	var overlays []overlay
	var broken []string // it may be the one that should have been used
	for _, folder := range p.kustomized() {
		var warnings []string
		alone := &Project{Dir: p.Dir, Warn: func(message string) { warnings = append(warnings, message) }}
		objects, err := alone.kustomizeIn(localFiles{FileSystem: filesys.MakeFsOnDisk(), project: alone}, folder)
		if err != nil {
			broken = append(broken, fmt.Sprintf("the kustomization in %s is left out: %v", folder, err))
			continue
		}
		workload := Workload(objects)
		if workload == nil {
			continue
		}
		overlays = append(overlays, overlay{folder, objects, completeness(objects, workload), warnings})
	}
	if len(overlays) == 0 {
		for _, message := range broken {
			p.warn("%s", message)
		}
		return nil
	}
	slices.SortStableFunc(overlays, func(a, b overlay) int { return cmp.Compare(b.rank, a.rank) })
	chosen, others := overlays[0], []string{}
	for _, message := range chosen.warnings {
		p.warn("%s", message)
	}
	for _, other := range overlays[1:] {
		if other.rank == chosen.rank {
			others = append(others, other.folder)
		}
	}
	if len(others) > 0 {
		p.warn("using the kustomization in %s; others that run the operator: %s", chosen.folder, strings.Join(others, ", "))
	}
	return chosen.objects
}

// completeness says how much of what an operator needs is there besides its workload: its account, rights for that, its namespace.
func completeness(objects []*unstructured.Unstructured, workload *unstructured.Unstructured) (rank int) {
	identity := IdentityIn(objects)
	if identity != nil {
		rank++
		if _, bindings := rightsOf(objects, identity); len(bindings) > 0 {
			rank++
		}
	}
	namespaces := only(objects, schema.GroupKind{Kind: "Namespace"})
	if slices.ContainsFunc(namespaces, func(one *unstructured.Unstructured) bool { return one.GetName() == workload.GetNamespace() }) {
		rank++
	}
	return rank
}

// kustomized are the folders with a kustomization below the usual ones, in the order of their paths.
func (p *Project) kustomized() (folders []string) {
	for _, usual := range p.existing(usualFolders...) {
		// What cannot be read is not there; the files are read again later, and then it is an error.
		_ = filepath.WalkDir(p.path(usual), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return nil //nolint:nilerr // see above
			}
			folder := p.relative(path)
			if p.holdsNoManifests(path, entry.Name()) || isForReading(folder+"/x") {
				return filepath.SkipDir
			}
			if p.hasKustomization(folder) {
				folders = append(folders, folder)
			}
			return nil
		})
	}
	return folders
}

// localFiles leave out of kustomizations what is not on this machine: to find out what a project has, nothing is fetched.
type localFiles struct {
	filesys.FileSystem
	project *Project
}

// ReadFile reads a file, and a kustomization without what it refers to elsewhere.
func (l localFiles) ReadFile(path string) ([]byte, error) {
	content, err := l.FileSystem.ReadFile(path)
	if err != nil || !isKustomization(filepath.Base(path)) {
		return content, err
	}
	var fields map[string]any
	if err := yaml.Unmarshal(content, &fields); err != nil {
		return content, nil //nolint:nilerr // kustomize says it better
	}
	changed := false
	for _, field := range []string{"resources", "bases", "components"} {
		list, _ := fields[field].([]any)
		local := slices.DeleteFunc(slices.Clone(list), func(one any) bool {
			name, _ := one.(string)
			_, err := os.Stat(filepath.Join(filepath.Dir(path), name))
			remote := err != nil && (strings.Contains(name, "://") || strings.HasPrefix(name, "git@") || strings.HasPrefix(name, "github.com/"))
			if remote {
				l.project.warn("%s refers to %s, which is not fetched", l.project.relative(path), name)
			}
			return remote
		})
		if len(local) < len(list) {
			fields[field], changed = local, true
		}
	}
	if !changed {
		return content, nil
	}
	fields["metadata"] = map[string]any{"name": "local"} // kustomize does not accept one that has nothing
	return yaml.Marshal(fields)
}
