// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oci builds container images of Go programs without a container engine: it compiles a program for each
// platform and writes it in the OCI image layout. It also reads the program of an existing image.
package oci

import (
	"fmt"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the one that is called nonroot by convention. It is given as a number because only that lets the kubelet
// verify that it is not root.
const user = "65532:65532"

// Program is a program for one platform.
type Program struct {
	Platform
	// Content is the static binary.
	Content []byte
}

// Image is an image that has nothing in it but a program.
type Image struct {
	// Programs are the same program for different platforms.
	Programs []Program
	// Entrypoint is where the program is in the image: an absolute path.
	Entrypoint string
	Env        []string
	// Labels are what the image says about itself.
	Labels map[string]string
	// References are the annotations by which tools find the image in a layout.
	References map[string]string
	Created    time.Time
}

// Layout is an image of all platforms, and by which names tools find it.
type Layout struct {
	images     v1.ImageIndex
	references map[string]string
}

// Layout builds the image. The same input gives the same image, byte for byte.
func (i Image) Layout() (Layout, error) {
	var images v1.ImageIndex = empty.Index
	for _, program := range i.Programs {
		one, err := i.image(program)
		if err != nil {
			return Layout{}, fmt.Errorf("building the image for %s: %w", program.Platform, err)
		}
		images = mutate.AppendManifests(images, mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: program.OS, Architecture: program.Architecture, Variant: program.Variant},
		}})
	}
	return Layout{images: mutate.Annotations(images, i.Labels).(v1.ImageIndex), references: i.References}, nil
}

// Digest returns the digest of the image index, which covers all platforms.
func (l Layout) Digest() (string, error) {
	digest, err := l.images.Digest()
	if err != nil {
		return "", fmt.Errorf("building the image: %w", err)
	}
	return digest.String(), nil
}

// image makes the image for one platform.
func (i Image) image(program Program) (v1.Image, error) {
	content, err := newLayer(program.Content, i.Entrypoint, i.Created)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: i.Created.UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		Created: created, OS: program.OS, Architecture: program.Architecture, Variant: program.Variant,
		Config: v1.Config{User: user, Env: i.Env, Entrypoint: []string{i.Entrypoint}, WorkingDir: "/", Labels: i.Labels},
		RootFS: v1.RootFS{Type: "layers"},
	}); err != nil {
		return nil, err
	}
	if image, err = mutate.Append(image, mutate.Addendum{Layer: content, History: v1.History{Created: created, CreatedBy: "opdock"}}); err != nil {
		return nil, err
	}
	return mutate.Annotations(image, i.Labels).(v1.Image), nil
}
