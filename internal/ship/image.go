// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package ship

import (
	"time"

	"github.com/opdock/opdock/internal/oci"
)

// NewImage is the image of the manager, which runs on each of the platforms.
func NewImage(programs []oci.Program, version string, created time.Time) oci.Image {
	return oci.Image{
		Programs:   programs,
		Entrypoint: "/manager",
		Created:    created,
		Labels: map[string]string{
			"org.opencontainers.image.title":       ImageName,
			"org.opencontainers.image.description": "The controllers of Opdock's fleet",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     version,
			"org.opencontainers.image.created":     created.UTC().Format(time.RFC3339),
		},
		References: map[string]string{"org.opencontainers.image.ref.name": version},
	}
}
