// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/opdock/opdock/internal/projectfile"
)

const (
	boilerplateFile = "hack/boilerplate.go.txt"
	mainFile        = "cmd/main.go"

	controllerRuntime = "sigs.k8s.io/controller-runtime"
)

// Project is the project in templates.
type Project struct {
	Name        string
	Domain      string
	Repo        string // import path of the module
	MultiGroup  bool
	Owner       string
	License     string
	Boilerplate string // the comment at the top of Go files; may be empty
	GoVersion   string
	// ControllerRuntimeMinor is 25 for v0.25: some names in it have changed.
	ControllerRuntimeMinor int
	// OpdockVersion is what test/prove requires; empty for a build that cannot be downloaded.
	OpdockVersion string
	// Year is the year in which a new project is created.
	Year int
}

// API is a kind in templates.
type API struct {
	Group          string // without the domain
	Domain         string
	QualifiedGroup string
	Version        string
	Kind           string
	Plural         string
	Singular       string // the kind in lower case
	ShortName      string
	Namespaced     bool

	Package string // import path of the types
	Alias   string // under which it is imported, such as shipv1
	Dir     string // of the types

	ControllerPackage string // its name in Go
	ControllerDir     string
	ControllerImport  string // import path
	ControllerAlias   string // under which main imports it; that of the package unless there are several
	// ControllerName is the name of the controller in metrics and logs.
	ControllerName string
	// Root is the relative path from ControllerDir to the folder of the project.
	Root string
	// SampleObject is the name of the object in the sample.
	SampleObject string
}

// Sample is the path of the kind's sample, from the root.
func (a API) Sample() string {
	name := a.Version + "_" + a.Singular + ".yaml"
	if a.Group != "" {
		name = a.Group + "_" + name
	}
	return sampleFolder + name
}

// versionedSample is the name of the object in the samples of all versions but the first: they are different objects.
func (a API) versionedSample() string { return a.Singular + "-sample-" + a.Version }

// project is one that is worked on.
type project struct {
	Project
	*tree
	file *projectfile.File
	mod  *modfile.File
}

// open reads the project around a folder.
func open(dir string) (*project, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	file, err := projectfile.Read(absolute)
	if errors.Is(err, projectfile.ErrNoProject) {
		return nil, wrongInput("%s is not the directory of an operator project: it has no PROJECT file", absolute).
			hint("create a project there: opdock init --domain example.com")
	}
	if err != nil {
		return nil, err
	}
	if err := file.Supported(); err != nil {
		wrong := wrongInput("the project in %s is not supported: %v", absolute, err)
		if slices.ContainsFunc(file.Layout, func(one string) bool { return strings.HasPrefix(one, "go.kubebuilder.io/") }) {
			return nil, wrong.hint("create a new project with opdock init and the same domain, create the kinds there, and move your code to it")
		}
		return nil, wrong
	}
	p := &project{tree: newTree(absolute), file: file}
	content, err := p.read(goModFile)
	if err != nil {
		return nil, err
	}
	if content == nil {
		return nil, wrongInput("%s is not a Go module: it has a PROJECT file, but no go.mod", absolute).
			hint("create one: go mod init %s", file.Repo)
	}
	if p.mod, err = modfile.Parse(goModFile, content, nil); err != nil {
		return nil, wrongInput("the go.mod of the project cannot be read: %v", err)
	}
	return p, p.fillIn()
}

func (p *project) fillIn() error {
	boilerplate, err := p.read(boilerplateFile)
	if err != nil {
		return err
	}
	p.Project = Project{
		Name: p.file.ProjectName, Domain: p.file.Domain, Repo: p.file.Repo, MultiGroup: p.file.MultiGroup,
		Boilerplate: strings.TrimSpace(string(boilerplate)), ControllerRuntimeMinor: newestControllerRuntime,
	}
	if p.Repo == "" && p.mod.Module != nil {
		p.Repo = p.mod.Module.Mod.Path
	}
	if p.Name == "" {
		p.Name = strings.ToLower(filepath.Base(p.dir))
	}
	if p.mod.Go != nil {
		p.GoVersion = p.mod.Go.Version
	}
	for _, required := range p.mod.Require {
		if required.Mod.Path == controllerRuntime {
			p.ControllerRuntimeMinor = minor(required.Mod.Version)
		}
	}
	return nil
}

// minor is 25 for v0.25.2.
func minor(version string) int {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return newestControllerRuntime
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return newestControllerRuntime
	}
	return number
}

// api describes a resource of the project to templates.
func (p *project) api(r *projectfile.Resource) API {
	a := API{
		Group: r.Group, Domain: r.Domain, QualifiedGroup: r.QualifiedGroup(), Version: r.Version, Kind: r.Kind,
		Plural: r.PluralName(), Singular: strings.ToLower(r.Kind), Namespaced: r.API != nil && r.API.Namespaced,
		Package: r.Path, Alias: importAlias(r), Dir: "api/" + r.Version,
		ControllerPackage: "controller", ControllerDir: "internal/controller", ControllerAlias: "controller",
		ControllerName: strings.ToLower(r.Kind), Root: "../..", SampleObject: strings.ToLower(r.Kind) + "-sample",
	}
	if p.MultiGroup && r.Group != "" {
		a.Dir = path.Join("api", r.Group, r.Version)
		a.ControllerDir = path.Join("internal/controller", r.Group)
		a.ControllerPackage = p.packageIn(a.ControllerDir, groupPackage(r.Group))
		a.ControllerAlias = goName(r.Group) + "controller"
		a.ControllerName = r.Group + "-" + a.ControllerName
		a.Root = "../../.."
	}
	a.ControllerImport = path.Join(p.Repo, a.ControllerDir)
	if below, inside := strings.CutPrefix(r.Path, p.Repo+"/"); inside {
		a.Dir = below
	}
	if a.Package == "" {
		a.Package = path.Join(p.Repo, a.Dir)
	}
	return a
}

// kubernetesGroups are the groups whose packages have well-known import names, such as appsv1.
var kubernetesGroups = []string{
	"admission", "admissionregistration", "apiextensions", "apps", "authentication", "authorization", "autoscaling", "batch", "certificates",
	"coordination", "core", "discovery", "events", "flowcontrol", "meta", "networking", "node", "policy", "rbac", "resource", "scheduling",
	"storage",
}

// importAlias is the name that kubebuilder gives the package of an API, unless that is the name of one of Kubernetes' own.
func importAlias(r *projectfile.Resource) string {
	group := goName(r.Group)
	if r.Group == "" {
		group = goName(r.Domain)
	}
	if slices.Contains(kubernetesGroups, group) {
		group = "own" + group
	}
	return group + r.Version
}

// groupPackage is what kubebuilder calls the package with the controllers of a group, which it may add to.
func groupPackage(group string) string {
	if name := goName(group); !token.IsKeyword(name) {
		return name
	}
	return "controller"
}

// goName leaves out what cannot be part of a name in Go. A name that would begin with a digit gets a letter.
func goName(words string) string {
	name := strings.NewReplacer("-", "", ".", "").Replace(words)
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "g" + name
	}
	return name
}
