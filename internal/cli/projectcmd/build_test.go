// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectcmd

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/cli/cmdutil"
)

// built runs opdock build and returns the archive's files by their names.
func built(t *testing.T, s *clitest.Console, output string, args ...string) map[string][]byte {
	t.Helper()
	code, screen := s.Screen(t.Context(), append([]string{"build", "--output", output}, args...)...)
	if code != cmdutil.ExitOK {
		t.Fatalf("exit code %d:\n%s", code, screen)
	}
	content, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for reader := tar.NewReader(bytes.NewReader(content)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBuildMakesTheSameImageAgain(t *testing.T) {
	dir := projectFixture(t, "single")
	output := filepath.Join(t.TempDir(), "deep", "image.tar")
	first := newConsole(nil)
	first.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	files := built(t, first, output, "--dir", dir, "--image", "team/harbour:v1")
	again := newConsole(nil)
	again.Env = first.Env
	built(t, again, output, "--dir", dir, "--image", "team/harbour:v1")
	if first.OutText.String() != again.OutText.String() || !strings.HasPrefix(first.OutText.String(), output+"\tteam/harbour:v1@sha256:") {
		t.Errorf("%s became %s", first.OutText, again.OutText)
	}
	expectScreen(t, first.ErrText.String(), "Building ./cmd of harbour", "compiled for linux/")
	if left, err := os.ReadDir(filepath.Dir(output)); err != nil || len(left) != 1 {
		t.Errorf("there are %v, %v", left, err)
	}
	var config struct {
		Created string `json:"created"`
		Config  struct {
			User       string
			Entrypoint []string
		} `json:"config"`
	}
	for _, content := range files {
		if bytes.Contains(content, []byte(`"Entrypoint"`)) {
			if err := json.Unmarshal(content, &config); err != nil {
				t.Fatal(err)
			}
		}
	}
	if config.Created != "2023-11-14T22:13:20Z" || config.Config.User != "65532:65532" || len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/manager" {
		t.Errorf("the image is %+v", config)
	}
	expectScreen(t, string(files["index.json"]), `"io.containerd.image.name": "team/harbour:v1"`, `"org.opencontainers.image.ref.name": "v1"`)
}

func TestBuildFollowsTheManifests(t *testing.T) {
	dir := projectFixture(t, "sdk")
	manifest, err := os.ReadFile(filepath.Join(dir, "deploy/operator.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "deploy/operator.yaml", strings.Replace(string(manifest), "image: REPLACE_IMAGE", "image: team/ferry:v3\n          command: [ferry]", 1))
	s := newConsole(nil)
	s.Env = os.Environ()
	code, screen := s.Screen(t.Context(), "build", "--dir", dir, "--output", filepath.Join(dir, "image"), "--quiet")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	expectScreen(t, screen, "\tteam/ferry:v3@sha256:")
	blobs, err := filepath.Glob(filepath.Join(dir, "image/blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, blob := range blobs {
		content, err := os.ReadFile(blob)
		if err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(content, []byte(`"Entrypoint":["/usr/local/bin/ferry"]`))
	}
	if !found {
		t.Error("the program is not where the manifests look for it")
	}
	if s.ErrText.Len() > 0 {
		t.Errorf("--quiet says\n%s", s.ErrText)
	}
	// An image may be replaced by a newer one.
	if code, screen := s.Screen(t.Context(), "build", "--dir", dir, "--output", filepath.Join(dir, "image"), "--quiet"); code != cmdutil.ExitOK {
		t.Errorf("the second time:\n%s", screen)
	}
}

func TestBuildPushes(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := strings.TrimPrefix(server.URL, "http://") + "/team/rowing:v1"
	s := newConsole(nil)
	s.Env = os.Environ()
	code, screen := s.Screen(t.Context(), "build", "--dir", projectFixture(t, "plain"), "--image", reference, "--push")
	clitest.ExpectCode(t, code, cmdutil.ExitOK)
	expectScreen(t, screen, "pushed "+reference, reference+"@sha256:")
	_, digest, _ := strings.Cut(strings.TrimSpace(s.OutText.String()), "@")
	answer, err := http.Get(server.URL + "/v2/team/rowing/manifests/" + digest)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the registry says %s", answer.Status)
	}
	server.Close()
	code, screen = s.Screen(t.Context(), "build", "--dir", projectFixture(t, "plain"), "--image", reference, "--push")
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	expectScreen(t, screen, "pushing "+reference, "you are logged in to it")
}

func TestBuildShowsWhatDoesNotCompile(t *testing.T) {
	dir := projectFixture(t, "plain")
	writeFile(t, dir, "main.go", "package main\n\nfunc main() { undefined() }\n")
	s := newConsole(nil)
	s.Env = os.Environ()
	code, screen := s.Screen(t.Context(), "build", "--dir", dir)
	clitest.ExpectCode(t, code, cmdutil.ExitError)
	expectScreen(t, screen, "main.go:3:15: undefined: undefined", "opdock: compiling . for linux/")
	if _, err := os.Stat(filepath.Join(dir, "dist")); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}
