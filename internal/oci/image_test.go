// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	programs = []Program{
		{Platform{OS: "linux", Architecture: "amd64"}, []byte("one")}, {Platform{OS: "linux", Architecture: "arm64"}, []byte("other")},
	}
	created = time.Unix(1_700_000_000, 0)
)

func image(created time.Time, programs ...Program) Image {
	return Image{
		Programs: programs, Entrypoint: "/manager", Created: created, Labels: map[string]string{"org.opencontainers.image.version": "v1"},
		References: map[string]string{"org.opencontainers.image.ref.name": "v1"},
	}
}

func TestTheSameInputMakesTheSameImage(t *testing.T) {
	archive := func(created time.Time, programs ...Program) (string, []byte) {
		layout, err := image(created, programs...).Layout()
		if err != nil {
			t.Fatal(err)
		}
		digest, err := layout.Digest()
		if err != nil {
			t.Fatal(err)
		}
		var archive bytes.Buffer
		if err := layout.WriteTar(&archive, created); err != nil {
			t.Fatal(err)
		}
		return digest, archive.Bytes()
	}
	digest, content := archive(created, programs...)
	// Where the machine is must not matter.
	again, contentAgain := archive(created.In(time.FixedZone("elsewhere", 3600)), programs...)
	if digest != again || !bytes.Equal(content, contentAgain) {
		t.Errorf("%s became %s", digest, again)
	}
	if other, _ := archive(created, programs[0]); other == digest {
		t.Error("another program makes the same image")
	}
}

// TestTheImageIsComplete reads the image as a registry would: every part by its digest.
func TestTheImageIsComplete(t *testing.T) {
	layout, err := image(created, programs...).Layout()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := layout.WriteFolder(folder); err != nil {
		t.Fatal(err)
	}
	blob := func(at descriptor, into any) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(folder, "blobs", "sha256", strings.TrimPrefix(at.Digest, "sha256:")))
		if err != nil {
			t.Fatal(err)
		}
		if digest(data) != at.Digest || len(data) != at.Size {
			t.Errorf("%s has %d bytes and the digest %s", at.Digest, len(data), digest(data))
		}
		if into != nil {
			if err := json.Unmarshal(data, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	top, err := os.ReadFile(filepath.Join(folder, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var named, images index
	if err := json.Unmarshal(top, &named); err != nil {
		t.Fatal(err)
	}
	blob(named.Manifests[0], &images)
	if len(images.Manifests) != len(programs) {
		t.Fatalf("there are %d images", len(images.Manifests))
	}
	for i, at := range images.Manifests {
		var image manifest
		var settings config
		blob(at, &image)
		blob(image.Config, &settings)
		blob(image.Layers[0], nil)
		if at.Platform.Architecture != programs[i].Architecture || settings.Architecture != programs[i].Architecture {
			t.Errorf("image %d is for %s and %s", i, at.Platform.Architecture, settings.Architecture)
		}
		if settings.Config.User != "65532:65532" || settings.Config.Entrypoint[0] != "/manager" || settings.Config.Labels["org.opencontainers.image.version"] != "v1" {
			t.Errorf("the image runs as %+v", settings.Config)
		}
		if uncompressed, err := layer(programs[i].Content, "/manager", created); err != nil || settings.RootFS.DiffIDs[0] != digest(uncompressed) {
			t.Errorf("the layer is not what the configuration says: %v", err)
		}
	}
}
