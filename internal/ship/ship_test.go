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

	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/testenv"
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
		testenv.WriteFile(t, path, path)
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
