// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push brings the image to the registry that the reference names, with the credentials that docker login and the like have
// stored. What the registry already has is not sent again.
func (l Layout) Push(ctx context.Context, reference string) error {
	target, err := name.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("reading the name of the image: %w", err)
	}
	folder, err := os.MkdirTemp("", "opdock-push-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := l.WriteFolder(folder); err != nil {
		return err
	}
	images, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	top, err := images.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	// What is pushed is the image of all platforms, and not the list that a layout keeps of its images.
	image, err := images.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		return fmt.Errorf("reading the image: %w", err)
	}
	if err := remote.WriteIndex(target, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	return nil
}
