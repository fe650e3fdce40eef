// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package build is the engine of opdock build: it compiles the operator of a project and writes an image of it.
package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/gocommand"
	"github.com/opdock/opdock/internal/hint"
	"github.com/opdock/opdock/internal/oci"
	"github.com/opdock/opdock/internal/project"
)

// Options are the input of Run.
type Options struct {
	Project *project.Project
	// Main is the main package of the operator.
	Main string
	// Image is the name and tag of the image; empty uses the image in the manifests, or the name of the project.
	Image string
	// Output is an archive, if it ends in .tar, or a directory; empty writes dist/image.tar in the project.
	Output    string
	Platforms []oci.Platform
	LDFlags   string
	// Created is the creation time of the image.
	Created time.Time
	// Env is the environment of the compiler, which writes its messages to Errors. Cache is a directory for programs that do
	// not have to be linked again; empty for none.
	Env    []string
	Errors io.Writer
	Cache  string
	// Step runs one step of the build and shows its progress: what is being done, and then what was done.
	Step func(running, done string, do func() error) error
}

// Image is an image that was written.
type Image struct {
	// Output is the archive or directory.
	Output string
	// Reference is the name and tag of the image, and Digest the digest of its content.
	Reference, Digest string
	// Notes are for the user.
	Notes []string

	layout oci.Layout
}

// Run compiles the operator and writes the image.
func Run(ctx context.Context, o Options) (Image, error) {
	output := cmp.Or(o.Output, filepath.Join(o.Project.Dir, "dist", "image.tar"))
	if err := checkOutput(output); err != nil {
		return Image{}, err
	}
	result := Image{Output: output}
	manifests, err := o.Project.Manifests(ctx)
	if err != nil {
		result.Notes = append(result.Notes, fmt.Sprintf("the manifests could not be read, so the program is placed at the default path: %v", err))
	}
	image := o.describe(manifests)
	result.Reference = image.References[containerdName]
	if image.Programs, err = o.compile(ctx); err != nil {
		return result, err
	}
	if result.layout, err = image.Layout(); err != nil {
		return result, err
	}
	if result.Digest, err = result.layout.Digest(); err != nil {
		return result, err
	}
	if err := writeImage(result.layout, output, o.Created); err != nil {
		return result, fmt.Errorf("writing the image: %w", err)
	}
	return result, nil
}

// Push pushes the image to the registry in its name.
func (i Image) Push(ctx context.Context) error {
	if err := i.layout.Push(ctx, i.Reference); err != nil {
		return hint.With(err, "check that the image name contains the right registry and that you are logged in to it")
	}
	return nil
}

// containerdName is the annotation by which containerd and docker name an image.
const containerdName = "io.containerd.image.name"

// describe returns the image without its programs.
func (o Options) describe(manifests []*unstructured.Unstructured) oci.Image {
	reference := o.Image
	if deployed, ok := project.Image(manifests); reference == "" && ok && !project.IsPlaceholder(deployed) && !strings.Contains(deployed, "@") {
		reference = deployed
	}
	reference = cmp.Or(reference, o.Project.Name)
	name, tag := reference, "latest"
	if at := strings.LastIndex(reference, ":"); at > strings.LastIndex(reference, "/") {
		name, tag = reference[:at], reference[at+1:]
	}
	return oci.Image{
		Created:    o.Created,
		Entrypoint: project.Entrypoint(manifests),
		// Manifests may name the program without its folder.
		Env: []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/"},
		Labels: map[string]string{
			"org.opencontainers.image.title":   path.Base(name),
			"org.opencontainers.image.version": tag,
			"org.opencontainers.image.created": o.Created.UTC().Format(time.RFC3339),
		},
		// One for each family of tools: skopeo and podman, containerd and docker.
		References: map[string]string{"org.opencontainers.image.ref.name": tag, containerdName: name + ":" + tag},
	}
}

func (o Options) compile(ctx context.Context) (programs []oci.Program, err error) {
	if gocommand.Find() != nil {
		return nil, hint.With(errors.New("the go command was not found on PATH"), "install Go from https://go.dev/dl")
	}
	source := oci.Source{Dir: o.Project.Dir, Package: o.Main, LDFlags: o.LDFlags, Env: o.Env, Errors: o.Errors, Cache: o.Cache}
	for _, platform := range o.Platforms {
		err := o.Step("compiling for "+platform.String(), "compiled for "+platform.String(), func() error {
			program, err := source.Compile(ctx, platform)
			programs = append(programs, program)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return nil, errors.New("interrupted: no image was written")
		case err != nil:
			return nil, err
		}
	}
	return programs, nil
}
