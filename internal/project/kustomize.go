// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// hasKustomization reports whether kustomize can build the folder.
func (p *Project) hasKustomization(folder string) bool { return p.kustomizationIn(folder) != "" }

// kustomizationIn returns the file of a folder that kustomize reads; empty if there is none.
func (p *Project) kustomizationIn(folder string) string {
	for _, name := range []string{kustomizationFile, "kustomization.yml", "Kustomization"} {
		if file := path.Join(folder, name); p.isFile(file) {
			return file
		}
	}
	return ""
}

// kustomize builds a folder with a kustomization.
func (p *Project) kustomize(folder string) ([]*unstructured.Unstructured, error) {
	return p.kustomizeIn(bareFolders{filesys.MakeFsOnDisk(), p}, folder)
}

func (p *Project) kustomizeIn(files filesys.FileSystem, folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	// Namespaces and CRDs first.
	options.Reorder = krusty.ReorderOptionLegacy
	files = legacyPatches{files, func(path string) {
		p.warn("%s: patches are names of files, which kustomize 5 does not accept; write each as path: FILE", p.relative(path))
	}}
	resources, warnings, err := runKustomize(options, files, p.path(folder))
	for _, one := range warnings {
		p.warn("kustomize: %s", one)
	}
	if err != nil {
		return nil, p.explainKustomize(folder, err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range resources.Resources() {
		encoded, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(encoded); err != nil {
			return nil, fmt.Errorf("building %s: %s: %w", folder, resource.CurId(), err)
		}
		if IsCRD(object) {
			if object, err = p.current(object, folder); err != nil {
				return nil, fmt.Errorf("building %s: %w", folder, err)
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// kustomizing is held while kustomize runs, because what it writes is caught by changing variables of the process.
var kustomizing sync.Mutex

// runKustomize returns what kustomize would write to standard error, where it would be in the way of whatever is shown there.
func runKustomize(options *krusty.Options, files filesys.FileSystem, dir string) (resources resmap.ResMap, warnings []string, err error) {
	kustomizing.Lock()
	defer kustomizing.Unlock()
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("running kustomize: %w", err)
	}
	defer reader.Close()
	written := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(reader) // as far as it can be read
		written <- all
	}()
	stderr, logged, flags := os.Stderr, log.Writer(), log.Flags()
	os.Stderr = writer
	log.SetOutput(writer)
	log.SetFlags(0)
	defer func() {
		os.Stderr = stderr
		log.SetOutput(logged)
		log.SetFlags(flags)
		writer.Close()
		for line := range strings.Lines(string(<-written)) {
			line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "# "), "Warning: ")
			if line != "" && !slices.Contains(warnings, line) {
				warnings = append(warnings, line)
			}
		}
	}()
	resources, err = krusty.MakeKustomizer(options).Run(files, dir)
	return resources, warnings, err
}

// explainKustomize finds the line that kustomize could not read: it tells of a whole chain of folders, and of the line
// within a part of a file.
func (p *Project) explainKustomize(folder string, cause error) error {
	root := strings.SplitN(folder, "/", 2)[0]
	wrong := filepath.WalkDir(p.path(root), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !isYAML(entry.Name()) {
			return err
		}
		// Only a file that kustomize complains about is to blame: others need not be part of what is built.
		if !strings.Contains(cause.Error(), entry.Name()) {
			return nil
		}
		_, err = p.readFile(path)
		return err
	})
	if errors.As(wrong, new(*FileError)) {
		return fmt.Errorf("building %s: %w", folder, wrong)
	}
	if path := missingPath(cause.Error()); path != "" {
		return p.missing(folder, path)
	}
	if stray := p.strayPatch(folder, cause.Error()); stray != nil {
		return stray
	}
	return fmt.Errorf("building %s with kustomize: %w", folder, cause)
}
