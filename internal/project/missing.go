// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/hint"
)

// kustomizationFile is the usual name of a kustomization.
const kustomizationFile = "kustomization.yaml"

// missingFile and missingKustomization find the path in what kustomize says about a file that does not exist, and about a folder
// without a kustomization.
var (
	missingFile          = regexp.MustCompile(`evalsymlink failure on '([^']+)'`)
	missingKustomization = regexp.MustCompile(`unable to find one of .* in directory '([^']+)'`)
)

func missingPath(message string) string {
	for _, expression := range []*regexp.Regexp{missingFile, missingKustomization} {
		if match := expression.FindStringSubmatch(message); match != nil {
			return match[1]
		}
	}
	return ""
}

// missing returns the error for a path that the kustomization of a folder needs: which file is missing, what refers to it, and
// what to do about it.
func (p *Project) missing(folder, absent string) error {
	file, by := p.relative(absent), p.referrer(folder, absent, map[string]bool{})
	if p.isFolder(file) {
		file = path.Join(file, kustomizationFile)
	}
	message := fmt.Sprintf("building %s: %s does not exist", folder, file)
	if by != "" {
		message += ", and " + by + " refers to it"
	}
	next := "create it, or write it with opdock generate if it is generated"
	if target := p.makeTarget(file); target != "" {
		next = "the Makefile writes it: make " + target
	}
	return hint.With(errors.New(message), next)
}

// referrer returns the kustomization that refers to a path, of those that the kustomization of a folder consists of. It is empty
// if none is found.
func (p *Project) referrer(folder, target string, seen map[string]bool) string {
	file := p.kustomizationIn(folder)
	if file == "" || seen[file] {
		return ""
	}
	seen[file] = true
	content, err := os.ReadFile(p.path(file))
	var fields any
	if err != nil || yaml.Unmarshal(content, &fields) != nil {
		return ""
	}
	var folders []string
	for _, text := range textsIn(fields) {
		_, after, _ := strings.Cut(text, "=") // generators have KEY=FILE
		for _, name := range []string{text, after} {
			at := filepath.Join(p.path(folder), filepath.FromSlash(name))
			if name != "" && at == target {
				return file
			}
			folders = append(folders, p.relative(at))
		}
	}
	for _, below := range folders {
		if by := p.referrer(below, target, seen); by != "" {
			return by
		}
	}
	return ""
}

// textsIn returns all texts of a YAML document, without keys.
func textsIn(value any) (texts []string) {
	switch value := value.(type) {
	case string:
		texts = append(texts, value)
	case []any:
		for _, one := range value {
			texts = append(texts, textsIn(one)...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			texts = append(texts, textsIn(value[key])...)
		}
	}
	return texts
}

// bareFolders gives a folder that a kustomization refers to, and that has manifests but no kustomization, one that lists them.
// Projects leave the file out of git if their Makefile writes the image of the day into it.
type bareFolders struct {
	filesys.FileSystem
	project *Project
}

// CleanedAbs returns the directory and the name of a file.
func (f bareFolders) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	if len(f.manifests(name)) > 0 {
		dir, _, err := f.FileSystem.CleanedAbs(filepath.Dir(name))
		return dir, filepath.Base(name), err
	}
	return f.FileSystem.CleanedAbs(name)
}

// ReadFile returns the content of a file.
func (f bareFolders) ReadFile(name string) ([]byte, error) {
	manifests := f.manifests(name)
	if len(manifests) == 0 {
		return f.FileSystem.ReadFile(name)
	}
	p, file := f.project, f.project.relative(name)
	message := fmt.Sprintf("%s does not exist; using %s in its place", file, strings.Join(manifests, ", "))
	if target := p.makeTarget(file); target != "" {
		message += ". The Makefile writes it: make " + target
	}
	p.warn("%s", message)
	return yaml.Marshal(map[string]any{"resources": manifests})
}

// manifests returns the files of a folder that hold complete objects, if the path is the kustomization that the folder lacks.
func (f bareFolders) manifests(name string) (files []string) {
	p, dir := f.project, filepath.Dir(name)
	if filepath.Base(name) != kustomizationFile || p.hasKustomization(p.relative(dir)) {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if !isYAML(entry.Name()) {
			continue
		}
		objects, err := p.readFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil // kustomize says what it lacks
		}
		complete := len(objects) > 0
		for _, one := range objects {
			complete = complete && one.GetName() != ""
		}
		if complete {
			files = append(files, entry.Name())
		}
	}
	return files
}
