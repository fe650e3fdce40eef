// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
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

// TestTheImageIsComplete reads the layout as tools do, and lets them check every part by its digest.
func TestTheImageIsComplete(t *testing.T) {
	made, err := image(created, programs...).Layout()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "image")
	put(t, filepath.Join(folder, "old"), "from another build")
	if err := made.WriteFolder(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "old")); !os.IsNotExist(err) {
		t.Errorf("what was there still is: %v", err)
	}
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	named, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(named.Manifests) != 1 || named.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1" {
		t.Fatalf("the layout has %+v", named.Manifests)
	}
	images, err := top.ImageIndex(named.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(images); err != nil {
		t.Error(err)
	}
	all, err := images.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Manifests) != len(programs) || all.MediaType != types.OCIImageIndex || all.Annotations["org.opencontainers.image.version"] != "v1" {
		t.Fatalf("it has %+v", all)
	}
	for i, at := range all.Manifests {
		one, err := images.Image(at.Digest)
		if err != nil {
			t.Fatal(err)
		}
		expectImage(t, one, at, programs[i])
	}
}

func expectImage(t *testing.T, one v1.Image, at v1.Descriptor, program Program) {
	t.Helper()
	settings, err := one.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if at.Platform.Architecture != program.Architecture || settings.Architecture != program.Architecture || settings.OS != "linux" {
		t.Errorf("the image of %s is for %s and %s", program.Architecture, at.Platform.Architecture, settings.Architecture)
	}
	if settings.Config.User != "65532:65532" || settings.Config.Entrypoint[0] != "/manager" || settings.Config.Labels["org.opencontainers.image.version"] != "v1" {
		t.Errorf("the image runs as %+v", settings.Config)
	}
	manifest, err := one.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != types.OCIConfigJSON || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != types.OCILayer {
		t.Errorf("the manifest is %+v", manifest)
	}
	files := tar.NewReader(mutate.Extract(one))
	file, err := files.Next()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(files)
	if err != nil || file.Name != "manager" || file.Mode != 0o555 || !bytes.Equal(content, program.Content) {
		t.Errorf("the image has %s with mode %o and %q: %v", file.Name, file.Mode, content, err)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}
