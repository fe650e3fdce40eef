// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ownModule is the module with the kinds to generate for.
const ownModule = "github.com/opdock/opdock"

// generateBench has a copy of the source for each side, and the generators.
type generateBench struct {
	upstream, ours string // module directories
	tools          string // the directory of the generators
	cache          string
}

func newGenerateBench(ctx context.Context, work string) (*generateBench, error) {
	g := &generateBench{
		upstream: filepath.Join(work, "upstream"), ours: filepath.Join(work, "ours"), tools: filepath.Join(work, "tools"), cache: filepath.Join(work, "cache"),
	}
	for _, dir := range []string{g.upstream, g.ours} {
		for _, part := range []string{"api", "hack"} {
			if err := os.CopyFS(filepath.Join(dir, part), os.DirFS(part)); err != nil {
				return nil, err
			}
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				return nil, err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "opdock.yaml"), []byte(generateConfig), 0o600); err != nil {
			return nil, err
		}
	}
	say("Building the upstream generators, from the versions in go.mod")
	programs := []string{"./cmd/opdock", "sigs.k8s.io/controller-tools/cmd/controller-gen", "k8s.io/kube-openapi/cmd/openapi-gen"}
	for _, name := range []string{"applyconfiguration", "client", "lister", "informer"} {
		programs = append(programs, "k8s.io/code-generator/cmd/"+name+"-gen")
	}
	version, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "sigs.k8s.io/controller-tools").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the version of controller-tools: %w", err)
	}
	flags := "-ldflags=-X sigs.k8s.io/controller-tools/pkg/version.version=" + strings.TrimSpace(string(version))
	build := exec.CommandContext(ctx, "go", append([]string{"build", flags, "-o", g.tools + "/"}, programs...)...) //nolint:gosec // the list is constant
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the generators: %w\n%s", err, out)
	}
	return g, nil
}

// runUpstream runs the commands of kubebuilder's Makefile and kube_codegen.sh.
func (g *generateBench) runUpstream(ctx context.Context) (memory uint64, err error) {
	const header, client = "hack/boilerplate.go.txt", ownModule + "/client"
	kinds := []string{"app/v1", "app/v1alpha1", "collector/v1", "kapp/v1", "kubegroup/v1", "robot/v1"}
	var packages, inputs []string
	for _, kind := range kinds {
		packages = append(packages, ownModule+"/api/"+kind)
		inputs = append(inputs, "--input", kind)
	}
	shared := append(slices.Clone(packages), ownModule+"/api/shared/v1")
	output := func(part string) []string {
		return []string{"--go-header-file", header, "--output-dir", "client/" + part, "--output-pkg", client + "/" + part}
	}
	for _, command := range [][]string{
		{"controller-gen", "crd:headerFile=hack/boilerplate.yaml.txt", "paths=./api/...", "output:crd:artifacts:config=config/crd/bases"},
		{"controller-gen", "object:headerFile=" + header, "paths=./api/..."},
		slices.Concat([]string{"applyconfiguration-gen"}, output("applyconfiguration"), shared),
		slices.Concat([]string{"client-gen"}, output("clientset"), []string{
			"--clientset-name", "versioned", "--apply-configuration-package", client + "/applyconfiguration", "--input-base", filepath.Join(g.upstream, "api"),
		}, inputs),
		slices.Concat([]string{"lister-gen"}, output("listers"), packages),
		slices.Concat([]string{"informer-gen"}, output("informers"), []string{
			"--versioned-clientset-package", client + "/clientset/versioned", "--listers-package", client + "/listers",
		}, packages),
		slices.Concat([]string{"openapi-gen", "--output-file", "zz_generated.openapi.go", "--report-filename", os.DevNull}, output("openapi"), []string{
			"k8s.io/apimachinery/pkg/apis/meta/v1", "k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/version", "k8s.io/apimachinery/pkg/api/resource",
		}, shared),
	} {
		used, err := g.run(ctx, g.upstream, command...)
		if err != nil {
			return 0, err
		}
		memory = max(memory, used)
	}
	return memory, nil
}

func (g *generateBench) runOurs(flags ...string) func(context.Context) (uint64, error) {
	return func(ctx context.Context) (uint64, error) {
		return g.run(ctx, g.ours, append([]string{"opdock", "generate"}, flags...)...)
	}
}

// run runs a generator and returns its peak memory.
func (g *generateBench) run(ctx context.Context, dir string, command ...string) (uint64, error) {
	process := exec.CommandContext(ctx, filepath.Join(g.tools, command[0]), command[1:]...) //nolint:gosec // built by us
	process.Dir = dir
	process.Env = append(os.Environ(), "XDG_CACHE_HOME="+g.cache, "GOCACHE="+goCache())
	if out, err := process.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", command[0], err, out)
	}
	usage, ok := process.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, fmt.Errorf("%s: the system does not report its memory", command[0])
	}
	peak := uint64(usage.Maxrss) //nolint:gosec // it is not negative
	if runtime.GOOS == "linux" {
		peak <<= 10
	}
	return peak, nil
}

// goCache returns Go's default cache. Go would otherwise put its cache below XDG_CACHE_HOME, which is a new
// directory.
func goCache() string {
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "go-build")
}

// compare runs both sides once and checks that they write the same files.
func (g *generateBench) compare(ctx context.Context) error {
	if _, err := g.runUpstream(ctx); err != nil {
		return err
	}
	if _, err := g.runOurs()(ctx); err != nil {
		return err
	}
	want, err := readTree(g.upstream)
	if err != nil {
		return err
	}
	got, err := readTree(g.ours)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("the upstream tools write %d files, but opdock writes %d", len(want), len(got))
	}
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			return fmt.Errorf("%s differs from the file that the upstream tools write", name)
		}
	}
	return nil
}

func readTree(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(file)
		return err
	})
	return files, err
}

func fastest(times []time.Duration) time.Duration { return slices.Min(times) }

func slowest(times []time.Duration) time.Duration { return slices.Max(times) }
