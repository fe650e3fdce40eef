// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/opdock/opdock/internal/cachedir"
	"github.com/opdock/opdock/internal/gocommand"
)

const module = "sigs.k8s.io/controller-runtime"

// UnsupportedError is the reason why an operator cannot be built with marks. It can be built without.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return e.Reason }

// Build describes how to build an operator that marks its reconciles.
type Build struct {
	// Flags are for go build, and Env is added to its environment.
	Flags, Env []string
	// Version is the version of controller-runtime that the project uses.
	Version string
}

// Project is an operator's project.
type Project struct {
	// Dir is its module, and Env the environment of the go command.
	Dir string
	Env []string
	// StateDir is a private folder for this project.
	StateDir string
	// CopiesDir is the folder for patched copies, which all projects share. By default it is in the user's cache.
	CopiesDir string
}

// Copies returns the folder for patched copies. It depends on nothing but the user: go compiles the same files again if
// they are in another folder, and everything that imports them.
func (p Project) Copies() string {
	if p.CopiesDir != "" {
		return p.CopiesDir
	}
	cache, err := cachedir.Dir(func(name string) string { return lastValue(p.Env, name) })
	if err != nil {
		cache = p.StateDir
	}
	return filepath.Join(cache, "instrumented")
}

// listed is the output of the go command about a module.
type listed struct {
	Version string
	Dir     string
	Replace *listed
	Error   *struct{ Err string }
}

// Prepare prepares the build. Call it again whenever go.mod, go.sum or go.work have changed; it does not repeat work.
// An *UnsupportedError contains the reason if the project cannot be built with marks.
func (p Project) Prepare(ctx context.Context) (*Build, error) {
	workspace, err := p.environment(ctx, "GOWORK")
	if err != nil {
		return nil, err
	}
	if workspace == "off" {
		workspace = ""
	}
	if slices.ContainsFunc(strings.Fields(lastValue(p.Env, "GOFLAGS")), func(flag string) bool {
		return strings.HasPrefix(strings.TrimLeft(flag, "-"), "modfile")
	}) {
		return nil, &UnsupportedError{"GOFLAGS already sets -modfile, which can be set only once"}
	}
	root := p.Dir
	if workspace != "" {
		root = filepath.Dir(workspace)
	}
	if _, err := os.Stat(filepath.Join(root, "vendor", "modules.txt")); err == nil {
		return nil, &UnsupportedError{"the project vendors its dependencies, so they cannot be replaced for one build"}
	}
	found, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	source, version := found.Dir, found.Version
	if found.Replace != nil {
		source = found.Replace.Dir
		version = strings.Trim(version+"-replaced-"+found.Replace.Version, "-")
	}
	if source == "" {
		return nil, &UnsupportedError{fmt.Sprintf("the source of controller-runtime %s is not in the module cache", version)}
	}
	copied, err := copyPatched(source, version, p.Copies())
	if err != nil {
		return nil, err
	}
	build := &Build{Version: found.Version}
	if workspace != "" {
		file, err := p.alternateWorkspace(workspace, copied)
		build.Env = []string{"GOWORK=" + file}
		return build, err
	}
	file, err := p.alternateModule(copied)
	build.Flags = []string{"-modfile=" + file}
	return build, err
}

// find returns the version that the project uses.
func (p Project) find(ctx context.Context) (*listed, error) {
	output, err := p.run(ctx, "list", "-m", "-json", module)
	if err != nil {
		if strings.Contains(err.Error(), "not a known dependency") {
			return nil, &UnsupportedError{"the project does not use controller-runtime"}
		}
		return nil, &UnsupportedError{fmt.Sprintf("go list -m %s: %v", module, err)}
	}
	found := &listed{}
	if err := json.Unmarshal(output, found); err != nil {
		return nil, fmt.Errorf("reading the output of go list: %w", err)
	}
	if found.Dir == "" && found.Replace == nil && found.Version != "" {
		// It is not in the module cache yet.
		output, err := p.run(ctx, "mod", "download", "-json", module+"@"+found.Version)
		if err != nil {
			return nil, &UnsupportedError{fmt.Sprintf("downloading controller-runtime: %v", err)}
		}
		if err := json.Unmarshal(output, found); err != nil {
			return nil, fmt.Errorf("reading the output of go mod download: %w", err)
		}
	}
	return found, nil
}

func (p Project) environment(ctx context.Context, name string) (string, error) {
	output, err := p.run(ctx, "env", name)
	if err != nil {
		return "", fmt.Errorf("running go env: %w", err)
	}
	return strings.TrimSpace(string(output)), nil
}

func (p Project) run(ctx context.Context, args ...string) ([]byte, error) {
	output, err := gocommand.Command(ctx, p.Dir, p.Env, args...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return output, err
}

// alternateModule is the project's go.mod with the copy in place of controller-runtime. Its go.sum lies beside it.
func (p Project) alternateModule(copied string) (string, error) {
	original := filepath.Join(p.Dir, "go.mod")
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	file, err := modfile.Parse(original, text, nil)
	if err != nil {
		return "", fmt.Errorf("reading go.mod: %w", err)
	}
	for _, one := range slices.Clone(file.Replace) {
		if one.Old.Path == module {
			if err := file.DropReplace(one.Old.Path, one.Old.Version); err != nil {
				return "", fmt.Errorf("reading go.mod: %w", err)
			}
		}
	}
	if err := file.AddReplace(module, "", copied, ""); err != nil {
		return "", fmt.Errorf("writing an alternate go.mod: %w", err)
	}
	file.Cleanup()
	changed, err := file.Format()
	if err != nil {
		return "", fmt.Errorf("writing an alternate go.mod: %w", err)
	}
	target := filepath.Join(p.StateDir, "instrumented.mod")
	return target, p.writeWithSums(target, changed, filepath.Join(p.Dir, "go.sum"), filepath.Join(p.StateDir, "instrumented.sum"))
}

// alternateWorkspace does the same for a workspace, whose replacements take precedence over those of its modules.
func (p Project) alternateWorkspace(original, copied string) (string, error) {
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	file, err := modfile.ParseWork(original, text, nil)
	if err != nil {
		return "", fmt.Errorf("reading go.work: %w", err)
	}
	root := filepath.Dir(original)
	absolute := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(root, filepath.FromSlash(path))
	}
	var used []string
	for _, use := range file.Use {
		used = append(used, use.Path)
	}
	for _, path := range used {
		if err := errors.Join(file.DropUse(path), file.AddUse(absolute(path), "")); err != nil {
			return "", fmt.Errorf("writing an alternate go.work: %w", err)
		}
	}
	for _, one := range slices.Clone(file.Replace) {
		old, now := one.Old, one.New
		if err := file.DropReplace(old.Path, old.Version); err != nil {
			return "", fmt.Errorf("writing an alternate go.work: %w", err)
		}
		if old.Path == module {
			continue
		}
		if now.Version == "" {
			now.Path = absolute(now.Path)
		}
		if err := file.AddReplace(old.Path, old.Version, now.Path, now.Version); err != nil {
			return "", fmt.Errorf("writing an alternate go.work: %w", err)
		}
	}
	if err := file.AddReplace(module, "", copied, ""); err != nil {
		return "", fmt.Errorf("writing an alternate go.work: %w", err)
	}
	file.Cleanup()
	target := filepath.Join(p.StateDir, "instrumented.work")
	return target, p.writeWithSums(target, modfile.Format(file.Syntax), original+".sum", target+".sum")
}

// writeWithSums writes a file and a copy of its sums, unless they exist.
func (p Project) writeWithSums(target string, text []byte, sums, targetSums string) error {
	if err := os.MkdirAll(p.StateDir, 0o700); err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	known, err := os.ReadFile(sums)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for path, content := range map[string][]byte{target: text, targetSums: known} {
		if there, err := os.ReadFile(path); err == nil && string(there) == string(content) {
			continue
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// lastValue returns the setting of a variable that os/exec would let win.
func lastValue(env []string, name string) string {
	for _, setting := range slices.Backward(env) {
		if value, found := strings.CutPrefix(setting, name+"="); found {
			return value
		}
	}
	return ""
}
