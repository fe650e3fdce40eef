// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Platform is what a program runs on.
type Platform struct {
	OS, Architecture string
	Variant          string // of the architecture, such as v7 of arm; mostly empty
}

func (p Platform) String() string {
	if p.Variant == "" {
		return p.OS + "/" + p.Architecture
	}
	return p.OS + "/" + p.Architecture + "/" + p.Variant
}

// ParsePlatform reads what String writes.
func ParsePlatform(text string) (Platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return Platform{}, fmt.Errorf("%q is not a platform; use linux/amd64, linux/arm64 or linux/arm/v7", text)
	}
	p := Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	if p.OS != "linux" || !slices.Contains(architectures, p.Architecture) {
		return Platform{}, fmt.Errorf("images for %q are not supported; use linux with %s", text, strings.Join(architectures, ", "))
	}
	return p, nil
}

// architectures are those for which Go compiles programs for Linux, and on which Kubernetes runs them.
var architectures = []string{"386", "amd64", "arm", "arm64", "loong64", "mips64le", "ppc64le", "riscv64", "s390x"}

// HostPlatform is the one for containers on this machine, which always see Linux.
func HostPlatform() Platform { return Platform{OS: "linux", Architecture: runtime.GOARCH} }

// Source is a Go program that can be compiled.
type Source struct {
	// Dir is a folder of its module.
	Dir string
	// Package is its main package, as the go command takes it.
	Package string
	// LDFlags are given to the linker, beside those that keep out what differs from build to build.
	LDFlags string
	// Tags are build tags, separated by commas.
	Tags string
	// Env is the environment of the compiler; nil means that of this process.
	Env []string
	// Errors is where the compiler writes what is wrong.
	Errors io.Writer
}

// Compile returns the program as a static binary. The same source at the same path makes the same binary.
func (s Source) Compile(ctx context.Context, platform Platform) (Program, error) {
	folder, err := os.MkdirTemp("", "opdock-build-")
	if err != nil {
		return Program{}, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "program")
	command := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", path, "-tags", s.Tags,
		"-ldflags", strings.TrimSpace("-s -w -buildid= "+s.LDFlags), s.Package)
	command.Dir = s.Dir
	command.Stderr = s.Errors
	command.Env = s.Env
	if command.Env == nil {
		command.Env = os.Environ()
	}
	command.Env = append(command.Env[:len(command.Env):len(command.Env)], "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	command.Env = append(command.Env, variantEnv(platform)...)
	if err := command.Run(); err != nil {
		return Program{}, fmt.Errorf("compiling %s for %s: %w", s.Package, platform, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return Program{}, fmt.Errorf("compiling %s for %s: %w", s.Package, platform, err)
	}
	return Program{Platform: platform, Content: content}, nil
}

// variantEnv is how the go command is told about a variant.
func variantEnv(p Platform) []string {
	switch {
	case p.Variant == "":
		return nil
	case p.Architecture == "arm":
		return []string{"GOARM=" + strings.TrimPrefix(p.Variant, "v")}
	default:
		return []string{"GO" + strings.ToUpper(p.Architecture) + "=" + p.Variant}
	}
}

// SourceDate is when an image was made, as agreed upon for builds that can be repeated: the value of SOURCE_DATE_EPOCH,
// and without one the beginning of time.
func SourceDate(value string) (time.Time, error) {
	if value == "" {
		return time.Unix(0, 0), nil
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(seconds, 0), nil
}
