// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// scaffoldLimit is the goal for opdock, as a share of the time of kubebuilder's commands.
const scaffoldLimit = 0.5

// scaffoldSection measures the time from an empty directory to a compiled operator, against the commands that
// kubebuilder runs for it.
func scaffoldSection(ctx context.Context, e environment) (string, error) {
	began := time.Now()
	s := &scaffoldBench{work: filepath.Join(e.work, "scaffold"), programs: filepath.Join(e.work, "scaffold-programs")}
	say("Building opdock and controller-gen")
	build := exec.CommandContext(ctx, "go", "build", "-o", s.programs+"/", "./cmd/opdock", "sigs.k8s.io/controller-tools/cmd/controller-gen") //nolint:gosec // a directory of the benchmark
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building: %w\n%s", err, out)
	}
	// This compiles the dependencies of both sides, so they are not measured.
	if _, err := s.theirs(ctx, "warm"); err != nil {
		return "", err
	}
	var ours, theirs []time.Duration
	for round := range e.runs {
		took, err := s.ours(ctx, fmt.Sprintf("ours-%d", round))
		if err != nil {
			return "", err
		}
		ours = append(ours, took)
		if took, err = s.theirs(ctx, fmt.Sprintf("theirs-%d", round)); err != nil {
			return "", err
		}
		theirs = append(theirs, took)
		say("Scaffold, round %d of %d: opdock %s, kubebuilder's steps %s", round+1, e.runs, ms(ours[round]), ms(theirs[round]))
	}
	share := ratio(median(ours), median(theirs))
	return sectionPage("scaffold", "A new project", time.Since(began), func(p printer) {
		p("The time runs from an empty directory to a compiled operator. All dependencies are downloaded and compiled beforehand. Each round uses")
		p("a new module name, so Go compiles the packages of the project again. For kubebuilder, only the commands that it and its")
		p("Makefile run are measured, not kubebuilder itself. They took turns in %d rounds.\n", e.runs)
		p("| | median | fastest | slowest |")
		p("|---|---:|---:|---:|")
		p("| `opdock init`, `opdock create api`, `opdock generate`, `go build` | %s | %s | %s |", ms(median(ours)), ms(fastest(ours)), ms(slowest(ours)))
		p("| after `init`: `go mod tidy`; after `create api`: `go mod tidy`, `controller-gen object`; by `make build`: `controller-gen` for manifests and code, `go fmt`, `go vet`, `go build` | %s | %s | %s |", ms(median(theirs)), ms(fastest(theirs)), ms(slowest(theirs)))
	}, []goal{{"a new operator, against kubebuilder's commands", fmt.Sprintf("at most %.2f ×", scaffoldLimit), times(share), share <= scaffoldLimit}}), nil
}

// scaffoldBench creates the same project repeatedly, under different names.
type scaffoldBench struct{ work, programs string }

func (s *scaffoldBench) ours(ctx context.Context, name string) (time.Duration, error) {
	dir, err := s.makeDir(name)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = s.run(ctx, dir, s.initialise(name), s.create(), []string{"opdock", "generate"}, []string{"go", "build", "-o", "bin/manager", "./cmd"})
	return time.Since(began), err
}

// theirs runs the commands that kubebuilder's init and create api run after writing files, and the build target of
// its Makefile.
func (s *scaffoldBench) theirs(ctx context.Context, name string) (time.Duration, error) {
	dir, err := s.makeDir(name)
	if err != nil {
		return 0, err
	}
	if err := s.run(ctx, dir, s.initialise(name)); err != nil {
		return 0, err
	}
	if err := forgetIndirect(dir); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.run(ctx, dir, []string{"go", "mod", "tidy"}); err != nil {
		return 0, err
	}
	took := time.Since(began)
	if err := s.run(ctx, dir, append(s.create(), "--no-generate")); err != nil {
		return 0, err
	}
	code := []string{"controller-gen", "object:headerFile=hack/boilerplate.go.txt", "paths=./..."}
	began = time.Now()
	err = s.run(ctx, dir,
		[]string{"go", "mod", "tidy"},
		code,
		[]string{"controller-gen", "rbac:roleName=manager-role", "crd", "webhook", "paths=./...", "output:crd:artifacts:config=config/crd/bases"},
		code,
		[]string{"go", "fmt", "./..."},
		[]string{"go", "vet", "./..."},
		[]string{"go", "build", "-o", "bin/manager", "./cmd"})
	return took + time.Since(began), err
}

func (s *scaffoldBench) initialise(name string) []string {
	return []string{"opdock", "init", "--domain", "example.com", "--repo", "example.com/" + name, "--project-name", "ship"}
}

func (s *scaffoldBench) create() []string {
	return []string{"opdock", "create", "api", "--group", "sea", "--version", "v1", "--kind", "Frigate"}
}

func (s *scaffoldBench) makeDir(name string) (string, error) {
	dir := filepath.Join(s.work, name)
	return dir, os.MkdirAll(dir, 0o700)
}

// forgetIndirect reduces go.mod to direct dependencies, which is what kubebuilder writes before it runs go mod tidy.
func forgetIndirect(dir string) error {
	path := filepath.Join(dir, "go.mod")
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	direct := regexp.MustCompile(`(?m)^.*// indirect\n`).ReplaceAll(content, nil)
	if err := os.WriteFile(path, direct, 0o600); err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, "go.sum"))
}

func (s *scaffoldBench) run(ctx context.Context, dir string, commands ...[]string) error {
	for _, command := range commands {
		program := command[0]
		if program != "go" {
			program = filepath.Join(s.programs, program)
		}
		process := exec.CommandContext(ctx, program, command[1:]...) //nolint:gosec // built by us
		process.Dir = dir
		if out, err := process.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
		}
	}
	return nil
}
