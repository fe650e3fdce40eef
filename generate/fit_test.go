// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// A client is compiled with the client-go of the project before anything is written.
func TestClientThatDoesNotFit(t *testing.T) {
	const clientset = "client/clientset/versioned/clientset.go"
	project := func(version string) files {
		return files{
			"go.mod":         "module example.com/a\n\ngo 1.26\n\nrequire k8s.io/client-go " + version + "\n\nreplace k8s.io/client-go => ./fake\n",
			"fake/go.mod":    "module k8s.io/client-go\n\ngo 1.26\n",
			"fake/old/o.go":  "package old\n",
			"api/v1/type.go": "package v1\n",
		}
	}
	for name, test := range map[string]struct {
		version string
		imports string
		unfit   bool
	}{
		"it fits":                            {"v0.31.0", "k8s.io/client-go/old", false},
		"it needs a package that is newer":   {"v0.31.0", "k8s.io/client-go/gentype", true},
		"a module that go.mod does not have": {"v0.31.0", "sigs.k8s.io/structured-merge-diff/v6/typed", true},
		"the generators' own version":        {codeGeneratorVersion, "k8s.io/client-go/gentype", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(test.version).write(t)
			t.Setenv("GOFLAGS", "-mod=mod")
			t.Setenv("GOPROXY", "off")
			t.Setenv("GOWORK", "off")
			m := module{dir: dir, path: "example.com/a"}
			p := &plan{module: m, config: &Config{Client: ClientConfig{Dir: "client"}}, enabled: map[string]bool{genClient: true}, client: []string{"api/v1"}}
			before, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			err = p.checkClient(t.Context(), []change{
				{Change: Change{Path: clientset, Kind: Missing}, content: []byte("package versioned\n\nimport _ \"" + test.imports + "\"\n")},
				{Change: Change{Path: "config/crd/a.yaml", Kind: Missing}, content: []byte("kind: A\n")},
			})
			unfit := &UnfitClientError{}
			if errors.As(err, &unfit) != test.unfit || !test.unfit && err != nil {
				t.Errorf("got %v", err)
			}
			after, err := os.ReadFile(filepath.Join(dir, "go.mod"))
			if err != nil || string(after) != string(before) {
				t.Errorf("go.mod is now %s, %v", after, err)
			}
			if _, err := os.Stat(filepath.Join(dir, clientset)); err == nil {
				t.Error("the client was written")
			}
		})
	}
}

func TestVersionOfTheGenerators(t *testing.T) {
	content, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if match := regexp.MustCompile(`k8s.io/code-generator (\S+)`).FindSubmatch(content); match == nil || string(match[1]) != codeGeneratorVersion {
		t.Errorf("go.mod has %s, and the constant is %s", match, codeGeneratorVersion)
	}
}

func TestFolderOfAnExistingClient(t *testing.T) {
	for name, want := range map[string]string{
		"pkg/generated/clientset/versioned/clientset.go":      "pkg/generated",
		"client-go/clientset/versioned/clientset.go":          "client-go",
		"pkg/generated/clientset/versioned/typed/a/v1/doc.go": "pkg/client",
	} {
		found := &discovery{files: map[string]sourceFile{
			"pkg/apis/a/v1/a.go": {path: "pkg/apis/a/v1/a.go", markers: markerClient | markerDeepcopyGen | codeRegisters},
			name:                 {path: name, generator: "client-gen"},
		}}
		found.collectPackages()
		p, err := newPlan(module{dir: "/m", path: "example.com/m"}, &Config{}, found, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.config.Client.Dir; got != want {
			t.Errorf("%s: client in %s, want %s", name, got, want)
		}
	}
}
