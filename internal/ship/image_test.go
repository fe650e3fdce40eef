// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package ship

import (
	"testing"
	"time"

	"github.com/opdock/opdock/internal/oci"
)

// TestTheImageStaysTheSame compares with an earlier digest: building an old version again gives the shipped image.
func TestTheImageStaysTheSame(t *testing.T) {
	programs := []oci.Program{
		{Platform: oci.Platform{OS: "linux", Architecture: "amd64"}, Content: []byte("one")},
		{Platform: oci.Platform{OS: "linux", Architecture: "arm64"}, Content: []byte("other")},
	}
	layout, err := NewImage(programs, "v1", time.Unix(1_700_000_000, 0)).Layout()
	if err != nil {
		t.Fatal(err)
	}
	const before = "sha256:cf18ad7ac769dfa88381c18df2e5828a7cbd3b09a551d538f61e8ae9f51bc6bc"
	if digest, err := layout.Digest(); err != nil || digest != before {
		t.Errorf("the digest is %s, %v", digest, err)
	}
}
