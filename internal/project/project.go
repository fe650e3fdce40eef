// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"

	"github.com/opdock/opdock/internal/gomodule"
	"github.com/opdock/opdock/internal/projectfile"
)

// Layout is the tool that created a project.
type Layout string

const (
	// KubebuilderV4 has its main in cmd and its controllers in internal/controller.
	KubebuilderV4 Layout = "kubebuilder v4"
	// KubebuilderOlder has its main beside go.mod, and kustomizations in config.
	KubebuilderOlder Layout = "kubebuilder before v4"
	// OperatorSDK is either like kubebuilder or, if old, has types in pkg/apis and manifests in deploy.
	OperatorSDK Layout = "operator-sdk"
	// Plain is any other Go module.
	Plain Layout = "plain Go module"
)

// Project is a Go operator project on disk.
type Project struct {
	// Dir is the folder of go.mod, absolute and without symbolic links.
	Dir string
	// Module is the import path in go.mod.
	Module string
	// Name is the PROJECT file's, or else comes from the module's. It can be part of the name of any object.
	Name   string
	Layout Layout
	// File is the content of PROJECT; nil if there is none.
	File *projectfile.File
	// Warn is called once with each message that is not an error. It may be nil.
	Warn func(message string)

	plugins []string // that PROJECT names
	warned  sync.Map // the warnings that Warn was told
}

// NotFoundError is returned by Find where there is no project.
type NotFoundError struct {
	Dir string
	// Missing is whether the directory itself does not exist.
	Missing bool
}

func (e *NotFoundError) Error() string {
	if e.Missing {
		return fmt.Sprintf("no project found in %s: the directory does not exist", e.Dir)
	}
	return fmt.Sprintf("no project found in %s: neither it nor a parent directory has a go.mod", e.Dir)
}

// Find returns the project that the folder belongs to. It looks for go.mod in the folder and in those above it.
func Find(dir string) (*Project, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("finding the project: %w", err)
	}
	// The go command answers with real paths, which could not be compared with those that lead through a link.
	start, err := filepath.EvalSymlinks(absolute)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFoundError{Dir: absolute, Missing: true}
	}
	if err != nil {
		return nil, fmt.Errorf("finding the project: %w", err)
	}
	root := gomodule.Dir(start)
	if root == "" {
		return nil, &NotFoundError{Dir: absolute}
	}
	content, err := os.ReadFile(filepath.Join(root, gomodule.File))
	if err != nil {
		return nil, fmt.Errorf("finding the project: %w", err)
	}
	return open(root, content)
}

func open(dir string, goMod []byte) (*Project, error) {
	p := &Project{Dir: dir, Module: modfile.ModulePath(goMod)}
	if p.Module == "" {
		return nil, &FileError{File: "go.mod", Line: 1, Err: errors.New("the module line is missing")}
	}
	file, err := readProjectFile(dir)
	if err != nil {
		return nil, err
	}
	p.File, p.plugins = file.content, file.plugins()
	p.Layout = p.layout()
	if p.File != nil {
		p.Name = p.File.ProjectName
	}
	if p.Name == "" {
		withoutVersion, _, _ := module.SplitPathVersion(p.Module)
		p.Name = withoutVersion[strings.LastIndex(withoutVersion, "/")+1:]
	}
	p.Name = objectName(p.Name)
	return p, nil
}

func (p *Project) layout() Layout {
	ofSDK := func(plugin string) bool { return strings.Contains(plugin, "sdk.operatorframework.io") }
	switch {
	case slices.ContainsFunc(p.plugins, ofSDK):
		return OperatorSDK
	case p.hasLayout(projectfile.GoLayout, projectfile.BundleLayout):
		return KubebuilderV4
	case p.File != nil:
		return KubebuilderOlder
	case p.isFolder("deploy") && (p.isFolder("pkg/apis") || p.isFolder("build")):
		return OperatorSDK
	default:
		return Plain
	}
}

func (p *Project) hasLayout(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(p.plugins, name) })
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// objectName makes a name that objects of Kubernetes can have.
func objectName(text string) string {
	const limit = 63
	name := notInNames.ReplaceAllString(strings.ToLower(text), "-")
	name = strings.Trim(name[:min(len(name), limit)], "-")
	if name == "" {
		return "operator"
	}
	return name
}

// path returns the path of a name relative to the project's folder, with slashes.
func (p *Project) path(name string) string { return filepath.Join(p.Dir, filepath.FromSlash(name)) }

// relative returns a path for messages: relative to the project's folder, with slashes.
func (p *Project) relative(path string) string {
	if below, err := filepath.Rel(p.Dir, path); err == nil && filepath.IsLocal(below) {
		return filepath.ToSlash(below)
	}
	return path
}

func (p *Project) isFolder(name string) bool {
	info, err := os.Stat(p.path(name))
	return err == nil && info.IsDir()
}

func (p *Project) isFile(name string) bool {
	info, err := os.Stat(p.path(name))
	return err == nil && info.Mode().IsRegular()
}

func (p *Project) warn(format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if _, again := p.warned.LoadOrStore(message, true); !again && p.Warn != nil {
		p.Warn(message)
	}
}

// existing returns those of the folders that the project has.
func (p *Project) existing(names ...string) []string {
	var found []string
	for _, name := range names {
		if p.isFolder(name) {
			found = append(found, name)
		}
	}
	return found
}

// Generators are those that are run before the project's manifests are used, for generate.Options.Only; nil means all
// that its markers ask for. It is false for projects that keep what is generated elsewhere, with tools of their own.
func (p *Project) Generators() (only []string, ok bool) {
	switch {
	case p.isFile("opdock.yaml"):
		return nil, true
	case p.isFolder("config/crd"):
		return []string{"deepcopy", "crd", "rbac", "webhook"}, true
	default:
		return nil, false
	}
}

// FileError is an error in a file of the project.
type FileError struct {
	// File is relative to the project's folder, with slashes.
	File string
	// Line counts from 1; 0 if unknown.
	Line int
	Err  error
}

func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

func (e *FileError) Unwrap() error { return e.Err }
