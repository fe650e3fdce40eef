// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/opdock/opdock/internal/gocommand"
	"github.com/opdock/opdock/internal/gomodule"
)

// clientGoModule is what generated clients are made for.
const clientGoModule = "k8s.io/client-go"

// codeGeneratorVersion is the version of the generators in go.mod. Their clients compile with client-go
// of the same version.
const codeGeneratorVersion = "v0.37.2"

// UnfitClientError is a generated client that does not compile with the client-go that the project uses.
type UnfitClientError struct {
	// Version is the project's, of k8s.io/client-go.
	Version string
	// Output is the output of the compiler.
	Output string
}

func (e *UnfitClientError) Error() string {
	const most = 5
	lines := strings.Split(strings.TrimSpace(e.Output), "\n")
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("… and %d more lines", len(lines)-most))
	}
	return fmt.Sprintf("no file was changed: the generated client does not compile with %s %s, which go.mod requires. "+
		"It is made by the generators of %s.\n%s", clientGoModule, e.Version, codeGeneratorVersion, strings.Join(lines, "\n"))
}

// checkClient compiles a client before it is written, if the project does not use the version of client-go that the generators are
// made for. Otherwise the next go mod tidy would upgrade the modules of the project.
func (p *plan) checkClient(ctx context.Context, changes []change) error {
	if !p.clientEnabled() || len(p.client) == 0 {
		return nil
	}
	version := p.module.requires(clientGoModule)
	if version == "" || semver.MajorMinor(version) == semver.MajorMinor(codeGeneratorVersion) {
		return nil
	}
	staging, err := os.MkdirTemp("", "opdock-client-")
	if err != nil {
		return fmt.Errorf("creating a working directory: %w", err)
	}
	defer os.RemoveAll(staging)
	replaced, packages := map[string]string{}, map[string]bool{}
	for i, one := range changes {
		file := ""
		if one.content != nil {
			file = filepath.Join(staging, strconv.Itoa(i)+".go")
			if err := os.WriteFile(file, one.content, 0o600); err != nil {
				return fmt.Errorf("writing a client to compile: %w", err)
			}
		}
		if path.Ext(one.Path) != ".go" {
			continue
		}
		replaced[p.module.absolute(one.Path)] = file
		if one.content != nil && strings.HasPrefix(one.Path, p.config.Client.Dir+"/") {
			packages["./"+path.Dir(one.Path)] = true
		}
	}
	if len(packages) == 0 {
		return nil
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return fmt.Errorf("writing a client to compile: %w", err)
	}
	overlayFile := filepath.Join(staging, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		return fmt.Errorf("writing a client to compile: %w", err)
	}
	mode := "-mod=readonly" // overrides GOFLAGS: nothing may change go.mod
	if _, err := os.Stat(p.module.absolute("vendor/modules.txt")); err == nil {
		mode = "-mod=vendor"
	}
	arguments := append([]string{"build", mode, "-overlay", overlayFile}, slices.Sorted(maps.Keys(packages))...)
	output, err := gocommand.Command(ctx, p.module.dir, nil, arguments...).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &UnfitClientError{Version: version, Output: string(bytes.ReplaceAll(output, []byte(staging+string(filepath.Separator)), nil))}
	}
	return nil
}

// requires returns the version of a module that go.mod requires; empty if it does not, or cannot be
// read.
func (m module) requires(name string) string {
	content, err := os.ReadFile(m.absolute(gomodule.File))
	if err != nil {
		return ""
	}
	parsed, err := modfile.ParseLax(gomodule.File, content, nil)
	if err != nil {
		return ""
	}
	for _, one := range parsed.Require {
		if one.Mod.Path == name {
			return one.Mod.Version
		}
	}
	return ""
}
