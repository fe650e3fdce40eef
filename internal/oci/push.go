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

// Push brings the image to the registry that the reference names, with the credentials that docker login and the like have
// stored. What the registry already has is not sent again.
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
