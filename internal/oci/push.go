// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push pushes the image to the registry in the reference, with the credentials from docker
// login and similar tools. Layers that the registry already has are not sent again.
func (l Layout) Push(ctx context.Context, reference string) error {
	target, err := name.ParseReference(reference)
	if err != nil {
		return fmt.Errorf("parsing the name of the image: %w", err)
	}
	if err := remote.WriteIndex(target, l.images, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", reference, err)
	}
	return nil
}
