// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package projectfile

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func sample(t *testing.T) (content string, file *File) {
	t.Helper()
	data, err := os.ReadFile("testdata/kubebuilder.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err = Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), file
}

func text(t *testing.T, file *File) string {
	t.Helper()
	content, err := file.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWhatIsNotChangedStaysTheSame(t *testing.T) {
	content, file := sample(t)
	if got := text(t, file); got != content {
		t.Errorf("got\n%s", got)
	}
}

func TestWhatIsRead(t *testing.T) {
	_, file := sample(t)
	if file.Domain != "example.com" || file.Repo != "example.com/yard" || file.ProjectName != "ship-yard" || !file.MultiGroup ||
		file.CLIVersion != "4.10.1" || file.Version != "3" || !reflect.DeepEqual(file.Layout, Layout{GoLayout}) || len(file.Resources) != 4 {
		t.Errorf("got %+v", file)
	}
	frigate := file.Find("ship", "v1", "Frigate")
	if frigate == nil || frigate.API == nil || !frigate.API.Namespaced || frigate.Webhooks == nil {
		t.Fatalf("got %+v", frigate)
	}
	want := Webhooks{Conversion: true, Defaulting: true, Validation: true, Spoke: []string{"v2"}, WebhookVersion: "v1"}
	if !reflect.DeepEqual(*frigate.Webhooks, want) {
		t.Errorf("got %+v", frigate.Webhooks)
	}
	for kind, want := range map[string][2]string{
		"Frigate": {"ship.example.com", "frigates"}, "Goose": {"sea.example.com", "goosen"},
		"Deployment": {"apps", "deployments"}, "Certificate": {"cert-manager.io", "certificates"},
	} {
		for i := range file.Resources {
			if r := &file.Resources[i]; r.Kind == kind && [2]string{r.QualifiedGroup(), r.PluralName()} != want {
				t.Errorf("%s: got %s %s", kind, r.QualifiedGroup(), r.PluralName())
			}
		}
	}
	if (&Resource{Domain: "example.com"}).QualifiedGroup() != "example.com" {
		t.Error("a group without a name is its domain")
	}
}

func TestChangesAreMadeInPlaceAndCanBeTakenBack(t *testing.T) {
	content, file := sample(t)
	frigate := file.Find("ship", "v1", "Frigate")
	frigate.Webhooks.Defaulting = false
	frigate.Webhooks.Spoke = append(frigate.Webhooks.Spoke, "v3")
	file.MultiGroup = false
	file.Resources = append(file.Resources, Resource{
		API: &API{CRDVersion: "v1", Namespaced: true}, Controller: true, Domain: "example.com", Group: "ship", Kind: "Raft",
		Path: "example.com/yard/api/ship/v1", Version: "v1",
	})
	want := strings.NewReplacer(
		"    defaulting: true\n", "",
		"    - v2\n", "    - v2\n    - v3\n",
		"multigroup: true # a comment beside a value\n", "",
		"unknownKey:", `- api:
    crdVersion: v1
    namespaced: true
  controller: true
  domain: example.com
  group: ship
  kind: Raft
  path: example.com/yard/api/ship/v1
  version: v1
unknownKey:`).Replace(content)
	if got := text(t, file); got != want {
		t.Errorf("got\n%s", got)
	}
	again, err := file.Clone()
	if err != nil {
		t.Fatal(err)
	}
	again.Find("ship", "v1", "Frigate").Webhooks.Defaulting = true
	again.Find("ship", "v1", "Frigate").Webhooks.Spoke = []string{"v2"}
	again.Remove("ship", "v1", "Raft")
	again.MultiGroup = true
	if got := text(t, again); got != strings.Replace(content, " # a comment beside a value", "", 1) {
		t.Errorf("got\n%s", got)
	}
	if file.Find("ship", "v1", "Raft") == nil {
		t.Error("the clone is not one")
	}
}

func TestTheLastResourceLeavesNothing(t *testing.T) {
	file := &File{Version: Version, Domain: "example.com", Layout: Layout{GoLayout}}
	before := text(t, file)
	file.Resources = []Resource{{Group: "ship", Version: "v1", Kind: "Frigate", API: &API{CRDVersion: "v1"}}}
	if !strings.Contains(text(t, file), "kind: Frigate") {
		t.Error("it is not there")
	}
	file.Remove("ship", "v1", "Frigate")
	if got := text(t, file); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
}

func TestEmptyValuesAreKept(t *testing.T) {
	content := "domain: \"\"\nlayout:\n- go.kubebuilder.io/v4\nmultigroup: false\nversion: \"3\"\n"
	file, err := Parse([]byte(content))
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, file); got != content {
		t.Errorf("got\n%s", got)
	}
}

func TestWhichProjectsAreSupported(t *testing.T) {
	for content, problem := range map[string]string{
		"layout: [go.kubebuilder.io/v4]\nversion: \"3\"":                                 "",
		"layout: go.kubebuilder.io/v4,helm.kubebuilder.io/v1-alpha\nversion: \"3\"":      "",
		"layout: [base.go.kubebuilder.io/v4, kustomize.common/v2]\nversion: \"3\"":       "",
		"layout: [go.kubebuilder.io/v3]\nversion: \"3\"":                                 "go.kubebuilder.io/v3",
		"layout: [helm.sdk.operatorframework.io/v1]\nversion: \"3\"":                     "helm.sdk",
		"version: \"2\"\ndomain: tutorial.kubebuilder.io\nrepo: tutorial\nmultigroup: 1": "cannot",
		"version: \"2\"\nrepo: tutorial":                                                 `version "2"`,
	} {
		file, err := Parse([]byte(content))
		if err == nil {
			err = file.Supported()
		}
		if (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v", content, err)
		}
	}
}

func TestFilesThatAreNoProject(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir); !errors.Is(err, ErrNoProject) {
		t.Errorf("got %v", err)
	}
	for _, content := range []string{"", "just words", "- a\n- b\n", "a: [", "resources: 7"} {
		if err := os.WriteFile(filepath.Join(dir, Name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); err == nil || errors.Is(err, ErrNoProject) {
			t.Errorf("%q: got %v", content, err)
		}
	}
}
