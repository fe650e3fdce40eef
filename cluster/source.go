// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

const (
	modulePath       = "github.com/opdock/opdock"
	controlPlanePath = modulePath + "/controlplane"
	binaryPackage    = "./cmd/" + binaryName
)

// source is where the control plane's code is taken from: a working copy, or the module proxy.
type source struct {
	checkout string // root of a working copy; empty: take version
	version  string // version to request from the module proxy
}

var (
	release       = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	pseudoVersion = regexp.MustCompile(`[-.]\d{14}-([0-9a-f]{12})$`)
)

// findSource ensures that the control plane has the same version as this package.
func findSource(ctx context.Context) (*source, error) {
	own := provenance{version: "(unknown)"}
	if info, ok := debug.ReadBuildInfo(); ok {
		own = provenanceIn(info)
	}
	return chooseSource(own, func() string { return findCheckout(ctx) })
}

// provenance describes the source that this package in the running program was built from.
type provenance struct {
	version     string
	workingCopy bool // the version may still be a released one, if that was checked out
}

// provenanceIn looks for this package as the program itself and as a dependency.
func provenanceIn(info *debug.BuildInfo) provenance {
	if info.Main.Path == modulePath {
		fromRepository := slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "vcs.revision" })
		return provenance{version: info.Main.Version, workingCopy: fromRepository}
	}
	for _, dependency := range info.Deps {
		if dependency.Path != modulePath {
			continue
		}
		if dependency.Replace != nil {
			// A replace directive means the local code.
			return provenance{version: "(devel)", workingCopy: true}
		}
		return provenance{version: dependency.Version}
	}
	return provenance{version: "(unknown)"}
}

func chooseSource(own provenance, findCheckout func() string) (*source, error) {
	commit := pseudoVersion.FindStringSubmatch(own.version)
	released := release.MatchString(own.version) && commit == nil
	if !released || own.workingCopy {
		// The working copy has the code for sure; the proxy may not.
		if checkout := findCheckout(); checkout != "" {
			return &source{checkout: checkout}, nil
		}
	}
	switch {
	case released:
		return &source{version: own.version}, nil
	case commit != nil:
		// The pseudo-version of the nested module may differ in its first part; the commit is the same.
		return &source{version: commit[1]}, nil
	}
	return nil, fmt.Errorf("this program was built with an unreleased version of %s (%s), so no matching control plane can be downloaded; "+
		"run it in the working copy, set %s to the path of a control plane, or use a released version", modulePath, own.version, binaryEnv)
}

// findCheckout returns the root of a working copy that the working directory is in or depends on, or "".
func findCheckout(ctx context.Context) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for up := dir; ; up = filepath.Dir(up) {
		if isCheckout(up) {
			return up
		}
		if up == filepath.Dir(up) {
			break
		}
	}
	// Only a replace directive points to a folder that contains the nested module; downloaded modules lack it.
	out, err := runGo(ctx, dir, nil, "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return ""
	}
	if found := strings.TrimSpace(string(out)); found != "" && isCheckout(found) {
		return found
	}
	return ""
}

func isCheckout(dir string) bool {
	return moduleIn(dir) == modulePath && moduleIn(filepath.Join(dir, "controlplane")) == controlPlanePath
}

// moduleIn reads the module line of dir/go.mod, in which the path may be quoted.
func moduleIn(dir string) string {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		if len(words) >= 2 && words[0] == "module" {
			return strings.Trim(words[1], "\"`")
		}
	}
	return ""
}

// key is the name of a control plane from this source in the cache folder.
func (s *source) key() string {
	if s.checkout != "" {
		return "devel-" + shortHash(s.checkout)
	}
	return s.version
}

// folder is where to run go build, after downloading the code if need be.
func (s *source) folder(ctx context.Context, onLine func(string)) (string, error) {
	if s.checkout != "" {
		return filepath.Join(s.checkout, "controlplane"), nil
	}
	at := controlPlanePath + "@" + s.version
	// Build from the module cache like from a working copy: unlike with go install, the number of packages is
	// known. The temporary folder keeps the build out of any module in the current directory.
	out, err := runGo(ctx, os.TempDir(), onLine, "mod", "download", "-json", at)
	var module struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(out, &module); err == nil {
		err = decodeErr
	}
	if module.Error != "" {
		err = errors.New(module.Error)
	}
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", at, err)
	}
	return module.Dir, nil
}

// sum changes whenever a build from the working copy could give another binary.
func (s *source) sum() (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, KubernetesVersion, buildFlags())
	root := filepath.Join(s.checkout, "controlplane")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && strings.HasPrefix(entry.Name(), ".") {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		// Tests are not compiled, and an executable is not source but perhaps the last build.
		if !info.Mode().IsRegular() || info.Mode().Perm()&0o111 != 0 || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		return addFile(hash, root, path)
	})
	if err != nil {
		return "", fmt.Errorf("reading the source of the control plane: %w", err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func addFile(hash io.Writer, root, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(hash, "%q %d\n%s", relative, len(data), data)
	return err
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
