// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/harbour:v1"
	layout, err := image(created, programs...).Layout()
	if err != nil {
		t.Fatal(err)
	}
	if err := layout.Push(t.Context(), reference); err != nil {
		t.Fatal(err)
	}
	parsed, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Index(parsed)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pushed.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := layout.Digest(); err != nil || got.String() != want {
		t.Errorf("the registry has %s instead of %s, %v", got, want, err)
	}
	manifest, err := pushed.IndexManifest()
	if err != nil || len(manifest.Manifests) != len(programs) {
		t.Errorf("the registry has %+v, %v", manifest, err)
	}
}

func TestPushIsRefused(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"errors":[{"code":"DENIED","message":"not you"}]}`, http.StatusForbidden)
	}))
	defer server.Close()
	layout, err := image(created, programs...).Layout()
	if err != nil {
		t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/harbour:v1"
	if err := layout.Push(t.Context(), reference); err == nil || !strings.Contains(err.Error(), "pushing "+reference) || !strings.Contains(err.Error(), "not you") {
		t.Errorf("the error is %v", err)
	}
}
