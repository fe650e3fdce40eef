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
)

const (
	goModFile = "go.mod"
	goSumFile = "go.sum"

	// newestControllerRuntime is the minor version that new projects use.
	newestControllerRuntime = 25
)

// knownModules reads the initial go.mod and go.sum of new projects. They are complete for all imports of all
// templates, so a project builds without go mod tidy. TestUpdateModules writes them.
func knownModules() (mod *modfile.File, sum string, err error) {
	content, err := fs.ReadFile(templates, "modules/go.mod.txt")
	if err != nil {
		return nil, "", err
	}
	sums, err := fs.ReadFile(templates, "modules/go.sum.txt")
	if err != nil {
		return nil, "", err
	}
	mod, err = modfile.Parse(goModFile, content, nil)
	return mod, string(sums), err
}

// matchModules updates go.mod to the imports of the project's Go files: imported modules become direct requirements,
// and missing ones are added. Without others, requirements that nothing imports stay unchanged.
func (p *project) matchModules() error {
	known, sums, err := knownModules()
	if err != nil {
		return err
	}
	imports, err := p.allImports(func(string) bool { return true })
	if err != nil {
		return err
	}
	isKnown := map[string]string{}
	for _, one := range known.Require {
		isKnown[one.Mod.Path] = one.Mod.Version
	}
	var (
		required []*modfile.Require
		changed  bool
		have     = map[string]bool{}
	)
	for _, one := range p.mod.Require {
		have[one.Mod.Path] = true
		next := *one
		if _, ours := isKnown[one.Mod.Path]; ours && !p.isTool(one.Mod.Path) {
			next.Indirect = !imports.need(one.Mod.Path, p.mod)
		}
		changed = changed || next.Indirect != one.Indirect
		required = append(required, &next)
	}
	for _, one := range known.Require {
		if !have[one.Mod.Path] && imports.need(one.Mod.Path, known) && !imports.providedBy(p.mod, one.Mod.Path) {
			required = append(required, &modfile.Require{Mod: one.Mod})
			changed = true
			if err := p.addSums(sums, one.Mod.Path, one.Mod.Version); err != nil {
				return err
			}
		}
	}
	if !changed {
		return nil
	}
	p.mod.SetRequireSeparateIndirect(required)
	p.mod.Cleanup()
	content, err := p.mod.Format()
	if err != nil {
		return fmt.Errorf("writing go.mod: %w", err)
	}
	return p.write(goModFile, content)
}

func (p *project) isTool(module string) bool {
	return slices.ContainsFunc(p.mod.Tool, func(t *modfile.Tool) bool { return within(t.Path, module) })
}

// addSums adds the lines of a module to go.sum.
func (p *project) addSums(sums, module, version string) error {
	content, err := p.read(goSumFile)
	if err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(string(content)))
	for line := range strings.Lines(sums) {
		if (strings.HasPrefix(line, module+" "+version+" ") || strings.HasPrefix(line, module+" "+version+"/go.mod ")) && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return p.write(goSumFile, []byte(strings.Join(lines, "")))
}

// importSet are import paths.
type importSet map[string]bool

// need reports whether a package of the module is imported, and not one of a nested module.
func (s importSet) need(module string, mod *modfile.File) bool {
	for one := range s {
		if within(one, module) && longestModule(one, mod) == module {
			return true
		}
	}
	return false
}

// providedBy reports whether another module already provides all packages of this module that are needed.
func (s importSet) providedBy(mod *modfile.File, module string) bool {
	for one := range s {
		if within(one, module) && longestModule(one, mod) == "" {
			return false
		}
	}
	return true
}

func longestModule(importPath string, mod *modfile.File) string {
	longest := ""
	for _, one := range mod.Require {
		if within(importPath, one.Mod.Path) && len(one.Mod.Path) > len(longest) {
			longest = one.Mod.Path
		}
	}
	return longest
}

func within(importPath, module string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

// allImports returns the imports of all Go files of the planned project that count.
func (p *project) allImports(counts func(name string) bool) (importSet, error) {
	set := importSet{}
	err := filepath.WalkDir(p.dir, func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && name == p.dir {
			return fs.SkipAll // it is made later
		}
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != p.dir && skippedFolder(name, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		relative, err := filepath.Rel(p.dir, name)
		if err != nil {
			return err
		}
		_, err = p.read(filepath.ToSlash(relative))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("finding imports: %w", err)
	}
	for name, file := range p.files {
		if strings.HasSuffix(name, ".go") && file.now != nil && counts(name) {
			for _, one := range importsOf(file.now) {
				set[one] = true
			}
		}
	}
	return set, nil
}

func skippedFolder(name, base string) bool {
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "vendor" || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(name, goModFile))
	return err == nil
}
