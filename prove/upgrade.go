// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/oci"
	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/release"
	"github.com/opdock/opdock/internal/prove/scenario"
)

// ErrNoUpgradeFrom is returned if an upgrade is requested without a release to upgrade from.
var ErrNoUpgradeFrom = errors.New("the family upgrade needs a release to upgrade from, such as the tag of the last one")

// checkUpgrade checks that the families, UpgradeFrom and UpgradeImage are consistent.
func (o *Options) checkUpgrade() error {
	if o.UpgradeFrom == "" && (slices.Contains(o.Families, "upgrade") || o.UpgradeImage != "") {
		return ErrNoUpgradeFrom
	}
	return nil
}

// wantsUpgrade reports whether an upgrade is requested.
func (o *Options) wantsUpgrade() bool {
	return o.UpgradeFrom != "" && (len(o.Families) == 0 || slices.Contains(o.Families, "upgrade"))
}

// programOf writes the program of a project's image to a file in the directory.
func programOf(ctx context.Context, p *project.Project, image, dir string) (file string, err error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("the program of an image runs only on Linux, and this is %s", runtime.GOOS)
	}
	manifests, err := p.Manifests(ctx)
	if err != nil {
		return "", err
	}
	content, err := oci.ReadProgram(ctx, image, project.Entrypoint(manifests), oci.HostPlatform())
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, p.Name)
	if err := os.WriteFile(file, content, 0o700); err != nil { //nolint:gosec // a program must be executable
		return "", fmt.Errorf("writing the program of the image: %w", err)
	}
	return file, nil
}

// earlier reads the release to upgrade from. Its source is in a private folder, which the returned function removes.
func earlier(ctx context.Context, p *project.Project, o *Options, e *engine.Options) (remove func(), err error) {
	dir, err := os.MkdirTemp(e.StateDir, "upgrade-")
	if err != nil {
		return nil, fmt.Errorf("creating a directory for %s: %w", o.UpgradeFrom, err)
	}
	made := dir
	remove = func() { _ = os.RemoveAll(made) } // it is private and in the way of nothing
	defer func() {
		if err != nil {
			_ = os.RemoveAll(made)
		}
	}()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("creating a directory for %s: %w", o.UpgradeFrom, err)
	}
	from, err := release.Project{Dir: p.Dir, Module: p.Module, Env: e.Operator.Env}.Get(ctx, o.UpgradeFrom, filepath.Join(dir, "release"))
	if err != nil {
		return nil, err
	}
	fail := func(err error) (func(), error) { return nil, fmt.Errorf("%s: %w", from.Name, err) }
	old, err := project.Find(from.Dir)
	if err != nil {
		return fail(err)
	}
	operator := e.Operator
	operator.Project, operator.StateDir = old, filepath.Join(dir, "state")
	if operator.Main, err = old.Main(o.Main); err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(operator.StateDir, 0o700); err != nil {
		return fail(err)
	}
	if o.UpgradeImage != "" {
		if operator.Program, err = programOf(ctx, old, o.UpgradeImage, operator.StateDir); err != nil {
			return fail(err)
		}
	}
	e.Earlier = &engine.Earlier{Ref: o.UpgradeFrom, Name: from.Name, Image: o.UpgradeImage, Operator: operator, Step: e.Steps[0], Subjects: e.Subjects}
	if o.Scenario != "" || len(o.Steps) > 0 {
		return remove, nil
	}
	// Users of that release have objects as its samples show them.
	samples, err := old.Samples(ctx)
	if err != nil {
		return fail(err)
	}
	definitions, err := old.CRDs(ctx)
	if err != nil {
		return fail(err)
	}
	external := func() []*unstructured.Unstructured { return old.ExternalCRDs(ctx, operator.Env) }
	if samples = servedSamples(samples, definitions, external, operator.Say); len(samples) == 0 {
		if operator.Say != nil {
			operator.Say(from.Name + " has no samples. The samples of the new release are used instead.")
		}
		return remove, nil
	}
	var then engine.Options
	stepsOf(&then, scenario.Default(samples, definitions), definitions, metav1.NamespaceDefault)
	e.Earlier.Step, e.Earlier.Subjects = then.Steps[0], then.Subjects
	if move := e.Move; move != nil && then.Move != nil {
		e.Move = func(namespace string) {
			move(namespace)
			then.Move(namespace)
		}
	}
	return remove, nil
}
