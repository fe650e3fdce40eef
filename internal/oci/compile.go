// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/gocommand"
)

// Platform is the platform of a program.
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
	// Cache is a folder in which programs are kept, so that one whose source has not changed is not linked again.
	// Empty: none.
	Cache string
	// Errors receives the messages of the compiler.
	Errors io.Writer
}

// Compile returns the program as a static binary. The same source at the same path makes the same binary.
func (s Source) Compile(ctx context.Context, platform Platform) (Program, error) {
	folder, release, err := s.folder(platform)
	if err != nil {
		return Program{}, fmt.Errorf("compiling %s for %s: %w", s.Package, platform, err)
	}
	defer release()
	// With the build ID, although an image does not need it: go uses it to find that a program is up to date. It is
	// the same for the same source.
	flags := []string{"-buildvcs=false", "-tags", s.Tags, "-ldflags", strings.TrimSpace("-s -w " + s.LDFlags)}
	arguments := slices.Concat([]string{"build", "-o", filepath.Join(folder, "program")}, flags, []string{s.Package})
	var env []string
	if s.Cache != "" && platform == HostPlatform() && runtime.GOOS == platform.OS {
		// Other than build, install does not link a program that is up to date. It cannot do so for other platforms.
		arguments = slices.Concat([]string{"install"}, flags, []string{s.Package})
		env = []string{"GOBIN=" + folder}
	}
	base := s.Env
	if base == nil {
		base = os.Environ()
	}
	env = slices.Concat(base, []string{"CGO_ENABLED=0", "GOOS=" + platform.OS, "GOARCH=" + platform.Architecture}, variantEnv(platform), env)
	command := gocommand.Command(ctx, s.Dir, env, arguments...)
	command.Stderr = s.Errors
	if err := command.Run(); err != nil {
		return Program{}, fmt.Errorf("compiling %s for %s: %w", s.Package, platform, err)
	}
	content, err := onlyFile(folder)
	if err != nil {
		return Program{}, fmt.Errorf("compiling %s for %s: %w", s.Package, platform, err)
	}
	return Program{Platform: platform, Content: content}, nil
}

// onlyFile reads the file in a folder, which go may have named.
func onlyFile(folder string) ([]byte, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	if len(entries) != 1 {
		return nil, fmt.Errorf("%s has %d files instead of the program alone", folder, len(entries))
	}
	return os.ReadFile(filepath.Join(folder, entries[0].Name()))
}

// folder is where the program goes, and what to do with it afterwards.
func (s Source) folder(platform Platform) (dir string, release func(), err error) {
	if s.Cache == "" {
		dir, err = os.MkdirTemp("", "opdock-build-")
		return dir, func() { os.RemoveAll(dir) }, err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%q", []string{s.Dir, s.Package, s.LDFlags, s.Tags, platform.String()}))
	dir = filepath.Join(s.Cache, hex.EncodeToString(key[:])[:16])
	return dir, func() {}, os.MkdirAll(dir, 0o700)
}

// variantEnv returns the variable of the go command for a variant.
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
