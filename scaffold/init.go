// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/opdock/opdock/internal/projectfile"
)

// InitOptions describes the project to create.
type InitOptions struct {
	// Dir is the folder of the project. It may contain the files of a new repository, but no code.
	Dir string
	// Domain is the domain of the API groups.
	Domain string
	// Repo is the path of the Go module. Default: that of go.mod, if there is one, or else the domain and the folder's name.
	Repo string
	// ProjectName is the prefix of the names of everything that is deployed. Default: the folder's name.
	ProjectName string
	// Owner has the copyright. Default: "The <project> Authors".
	Owner string
	// License is one of Licenses, or a file with the text to begin Go files with. Default: apache2.
	License string
	// MultiGroup uses a separate folder for each API group.
	MultiGroup bool
	// Year is the year of the copyright.
	Year int
	// OpdockVersion is the version of Opdock that the module in test/prove requires. If it is empty, Go chooses the latest when that
	// module is first built. [OwnVersion] is the one of the running program.
	OpdockVersion string
}

// Licenses are the licenses that can be chosen by name, with the header of Go files.
var Licenses = []string{"apache2", "mit", "copyright", "none"}

// allowed are what may be in the folder of a new project.
var allowed = []string{".git", ".gitignore", ".gitattributes", ".idea", ".vscode", "go.mod", "go.sum", "README.md", "README", "LICENSE", "LICENSE.md", "LICENSE.txt"}

// Init plans a new project.
func Init(o InitOptions) (*Plan, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	p := &project{tree: newTree(dir), file: &projectfile.File{Version: projectfile.Version, Layout: projectfile.Layout{projectfile.GoLayout}}}
	if err := p.checkEmpty(); err != nil {
		return nil, err
	}
	if err := p.choose(&o); err != nil {
		return nil, err
	}
	if err := p.writeInitial(); err != nil {
		return nil, err
	}
	return newPlan(p.tree), nil
}

// InitDefaults sets defaults, for interactive prompts.
func InitDefaults(o InitOptions) InitOptions {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o
	}
	if o.ProjectName == "" {
		o.ProjectName = strings.ToLower(strings.ReplaceAll(filepath.Base(dir), "_", "-"))
	}
	if o.Repo == "" {
		content, err := os.ReadFile(filepath.Join(dir, goModFile))
		if err == nil {
			o.Repo = modfile.ModulePath(content)
		} else if o.Domain != "" {
			o.Repo = o.Domain + "/" + filepath.Base(dir)
		}
	}
	if o.Owner == "" {
		o.Owner = fmt.Sprintf("The %s Authors", o.ProjectName)
	}
	if o.License == "" {
		o.License = Licenses[0]
	}
	return o
}

// checkEmpty ensures that no existing file is overwritten or becomes part of the project by accident.
func (p *project) checkEmpty() error {
	entries, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the directory: %w", err)
	}
	var others []string
	for _, entry := range entries {
		if entry.Name() == projectfile.Name {
			return wrongInput("%s already contains a project", p.dir).hint("add a kind to it: opdock create api")
		}
		if !slices.Contains(allowed, entry.Name()) {
			others = append(others, entry.Name())
		}
	}
	if len(others) == 0 {
		return nil
	}
	const shown = 5
	list := strings.Join(others[:min(len(others), shown)], ", ")
	if len(others) > shown {
		list += fmt.Sprintf(" and %d more", len(others)-shown)
	}
	return wrongInput("%s is not empty: it contains %s", p.dir, list).
		hint("create the project in a new directory: mkdir operator && cd operator").
		hint("allowed files: %s", strings.Join(allowed, ", "))
}

func (p *project) choose(o *InitOptions) error {
	if o.Domain == "" {
		return wrongInput("--domain is required: API groups end with it").hint("for example: --domain example.com")
	}
	if err := checkDomain(o.Domain); err != nil {
		return err
	}
	before := *o
	*o = InitDefaults(*o)
	if err := checkProjectName(o.ProjectName); err != nil {
		return err
	}
	if err := checkRepo(o.Repo); err != nil {
		if before.Repo == "" {
			return wrongInput("the path of the Go module cannot be derived from the name of the directory: %v", err).hint("set it: --repo example.com/ship-operator")
		}
		return err
	}
	content, err := p.read(goModFile)
	if err != nil {
		return err
	}
	if existing := modfile.ModulePath(content); content != nil && existing != o.Repo {
		return wrongInput("the go.mod in this directory names module %q, not %q", existing, o.Repo).hint("remove --repo, or remove go.mod")
	}
	boilerplate, err := boilerplate(*o)
	if err != nil {
		return err
	}
	p.file.Domain, p.file.Repo, p.file.ProjectName, p.file.MultiGroup = o.Domain, o.Repo, o.ProjectName, o.MultiGroup
	known, _, err := knownModules()
	if err != nil {
		return err
	}
	p.Project = Project{
		Name: o.ProjectName, Domain: o.Domain, Repo: o.Repo, MultiGroup: o.MultiGroup, Owner: o.Owner, License: o.License,
		Boilerplate: boilerplate, GoVersion: known.Go.Version, ControllerRuntimeMinor: newestControllerRuntime, Year: o.Year,
		OpdockVersion: o.OpdockVersion,
	}
	return nil
}

// boilerplate is the comment at the top of Go files.
func boilerplate(o InitOptions) (string, error) {
	lines := []string{fmt.Sprintf("Copyright %d %s.", o.Year, strings.TrimSuffix(o.Owner, "."))}
	switch o.License {
	case "apache2":
		lines = append(lines, "SPDX-License-Identifier: Apache-2.0")
	case "mit":
		lines = append(lines, "SPDX-License-Identifier: MIT")
	case "copyright":
	case "none":
		return "", nil
	default:
		content, err := os.ReadFile(o.License)
		if err != nil {
			return "", wrongInput("%q is neither a known license nor a file", o.License).hint("licenses: %s", strings.Join(Licenses, ", "))
		}
		return asComment(strings.TrimSpace(string(content))), nil
	}
	return "// " + strings.Join(lines, "\n// "), nil
}

// asComment turns text into a comment, unless it is one already.
func asComment(text string) string {
	if text == "" || strings.HasPrefix(text, "//") || strings.HasPrefix(text, "/*") {
		return text
	}
	return "/*\n" + text + "\n*/"
}

// keptFiles are files that are kept unchanged if they exist.
var keptFiles = []string{"README.md", ".gitignore"}

func (p *project) writeInitial() error {
	data := view{Project: p.Project}
	files, err := renderFolder("init", data)
	if err != nil {
		return err
	}
	for path, content := range files {
		if slices.Contains(keptFiles, path) {
			if existing, err := p.read(path); err != nil || existing != nil {
				continue
			}
		}
		if err := p.write(path, content); err != nil {
			return err
		}
	}
	header := ""
	if p.Boilerplate != "" {
		header = p.Boilerplate + "\n"
	}
	if err := p.write(boilerplateFile, []byte(header)); err != nil {
		return err
	}
	project, err := p.file.Bytes()
	if err != nil {
		return err
	}
	if err := p.write(projectfile.Name, project); err != nil {
		return err
	}
	return p.writeModules()
}

// writeModules writes a go.mod that is complete for all that can be made later, and go.sum with it.
func (p *project) writeModules() error {
	known, sums, err := knownModules()
	if err != nil {
		return err
	}
	if err := known.AddModuleStmt(p.Repo); err != nil {
		return err
	}
	known.Cleanup()
	p.mod = known
	content, err := known.Format()
	if err != nil {
		return err
	}
	if err := p.write(goModFile, content); err != nil {
		return err
	}
	if err := p.write(goSumFile, []byte(sums)); err != nil {
		return err
	}
	return p.matchModules()
}
