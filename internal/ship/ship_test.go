// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package ship

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/internal/controller"
)

const root = "../.."

func TestTheInstallerNamesTheImage(t *testing.T) {
	for _, test := range []struct {
		image    Image
		expected string
	}{
		{Image{}, `image: opdock-manager:[0-9]`},
		{Image{Tag: "v9"}, `image: opdock-manager:v9\n`},
		{Image{Name: "elsewhere/manager", Tag: "v9"}, `image: elsewhere/manager:v9\n`},
	} {
		data, err := Installer(filepath.Join(root, "config/default"), test.image)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(test.expected).Match(data) {
			t.Errorf("%+v: there is no %s", test.image, test.expected)
		}
	}
}

func TestTheInstallerHasAllKinds(t *testing.T) {
	data, err := Installer(filepath.Join(root, "config/default"), Image{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range controller.Kinds {
		expected := []string{"name: " + kind.CRD()}
		for _, level := range []string{"admin", "editor", "viewer"} {
			expected = append(expected, "name: opdock-"+strings.ToLower(kind.Kind)+"-"+level)
		}
		for _, text := range expected {
			if !bytes.Contains(data, []byte("\n  "+text+"\n")) {
				t.Errorf("%s: nothing in the installer has %s", kind.Kind, text)
			}
		}
	}
}

func TestTheChartKnowsAllKinds(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "charts/opdock/values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties struct {
			Kinds struct {
				Items struct {
					Enum []string `json:"enum"`
				} `json:"items"`
			} `json:"kinds"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kind := range controller.Kinds {
		names = append(names, strings.ToLower(kind.Kind))
	}
	slices.Sort(names)
	if known := schema.Properties.Kinds.Items.Enum; !slices.Equal(known, names) {
		t.Errorf("the values of the chart can name %q instead of %q", known, names)
	}
}

func TestTheChartHasWhatConfigHas(t *testing.T) {
	stale, err := SyncChart(root, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(stale) > 0 {
		t.Errorf("go generate ./internal/ship would write %s", strings.Join(stale, ", "))
	}
}

func TestSyncChartCopiesAndRemoves(t *testing.T) {
	folder := t.TempDir()
	source := filepath.Join(folder, "config/crd/bases/new.yaml")
	leftover := filepath.Join(folder, "charts/opdock/files/crds/old.yaml")
	for _, path := range []string{source, leftover} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if stale, err := SyncChart(folder, false); err != nil || len(stale) != 2 {
		t.Fatalf("%q was stale: %v", stale, err)
	}
	copied, err := os.ReadFile(filepath.Join(filepath.Dir(leftover), "new.yaml"))
	if err != nil || string(copied) != source {
		t.Errorf("the copy is %q: %v", copied, err)
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("what config does not have is still there: %v", err)
	}
	if stale, err := SyncChart(folder, true); err != nil || len(stale) != 0 {
		t.Errorf("%q is stale again: %v", stale, err)
	}
}

var (
	programs = []Program{{"linux", "amd64", []byte("one")}, {"linux", "arm64", []byte("other")}}
	created  = time.Unix(1_700_000_000, 0)
)

func TestTheSameInputMakesTheSameImage(t *testing.T) {
	archive := func(created time.Time, programs ...Program) (string, []byte) {
		layout, err := NewLayout(programs, "v1", created)
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
	layout, err := NewLayout(programs, "v1", created)
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
		if uncompressed, err := layer(programs[i].Content, created); err != nil || settings.RootFS.DiffIDs[0] != digest(uncompressed) {
			t.Errorf("the layer is not what the configuration says: %v", err)
		}
	}
}
