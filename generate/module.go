// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/opdock/opdock/internal/gomodule"
)

// module is the Go module that is generated for.
type module struct {
	dir  string // absolute, without symbolic links
	path string // import path
}

// NoModuleError is returned for a folder that is in no Go module.
type NoModuleError struct {
	Dir string
	// Missing is whether the folder itself does not exist.
	Missing bool
}

func (e *NoModuleError) Error() string {
	if e.Missing {
		return fmt.Sprintf("no go.mod found in %s: the directory does not exist", e.Dir)
	}
	return fmt.Sprintf("no go.mod found in %s or a parent directory: generating needs a Go module", e.Dir)
}

// findModule searches go.mod in the folder and its parents.
func findModule(dir string) (module, error) {
	if dir == "" {
		dir = "."
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return module{}, fmt.Errorf("finding the module: %w", err)
	}
	// go list returns real paths, which differ from paths through a symbolic link.
	start, err := filepath.EvalSymlinks(absolute)
	if errors.Is(err, fs.ErrNotExist) {
		return module{}, &NoModuleError{Dir: absolute, Missing: true}
	}
	if err != nil {
		return module{}, fmt.Errorf("finding the module: %w", err)
	}
	root := gomodule.Dir(start)
	if root == "" {
		return module{}, &NoModuleError{Dir: absolute}
	}
	file := filepath.Join(root, gomodule.File)
	content, err := os.ReadFile(file)
	if err != nil {
		return module{}, fmt.Errorf("finding the module: %w", err)
	}
	name := modfile.ModulePath(content)
	if name == "" {
		return module{}, &Error{Problems: []Problem{{File: file, Line: 1, Message: "the module line is missing"}}}
	}
	return module{dir: root, path: name}, nil
}

// relative returns the path below the module's folder with slashes, and other paths unchanged.
func (m module) relative(file string) string {
	if below, inside := strings.CutPrefix(file, m.dir+string(filepath.Separator)); inside {
		return filepath.ToSlash(below)
	}
	return file
}

// absolute returns the path of something that is named relative to the module's folder.
func (m module) absolute(file string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(m.dir, filepath.FromSlash(file))
}

// importPath returns the import path of a folder in the module.
func (m module) importPath(dir string) string { return path.Join(m.path, filepath.ToSlash(dir)) }
