// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package provecmd

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/cli/clitest"
	"github.com/opdock/opdock/internal/golden"
	"github.com/opdock/opdock/internal/prove/scenario"
	"github.com/opdock/opdock/internal/testenv"
)

// withSchema is the project with a schema, and a second kind about which its schema says nothing.
func withSchema(more map[string]string) map[string]string {
	files := maps.Clone(ship)
	definition := func(kind, plural, spec string) string {
		return strings.NewReplacer("KIND", kind, "PLURAL", plural, "SPEC", spec).Replace(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.sea.example.com}
spec:
  group: sea.example.com
  scope: Namespaced
  names: {kind: KIND, plural: PLURAL}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: SPEC}}}
`)
	}
	files["config/crd/bases/frigates.yaml"] = definition("Frigate", "frigates", "{type: object, required: [image], properties: {image: {type: string}, replicas: {type: integer}}}")
	files["config/crd/bases/sloops.yaml"] = definition("Sloop", "sloops", `{type: object, x-kubernetes-validations: [{rule: "false"}]}`)
	maps.Copy(files, more)
	return files
}

func TestWriteScenario(t *testing.T) {
	sample := map[string]string{"config/samples/victory.yaml": "apiVersion: sea.example.com/v1\nkind: Frigate\nmetadata: {name: victory}\nspec: {image: oak, replicas: 3}\n"}
	for name, files := range map[string]map[string]string{"schema": withSchema(nil), "samples": withSchema(sample)} {
		t.Run(name, func(t *testing.T) {
			dir := testenv.Dir(t, files)
			path := filepath.Join(dir, "prove.yaml")
			code, text := screen(t, newConsole(nil), dir, "--dir", dir, "--write-scenario", path)
			clitest.ExpectCode(t, code, 0)
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, "scenario/"+name, text+"--- prove.yaml\n"+string(content))
			if _, err := scenario.Load(path); err != nil {
				t.Errorf("the file cannot be used: %v", err)
			}
			code, printed := newConsole(nil).Screen(t.Context(), "prove", "--dir", dir, "--write-scenario", "-")
			clitest.ExpectCode(t, code, 0)
			if !strings.Contains(printed, string(content)) {
				t.Errorf("printed is\n%s", printed)
			}
		})
	}
}

func TestWriteScenarioKeepsFiles(t *testing.T) {
	dir := testenv.Dir(t, withSchema(map[string]string{"prove.yaml": "mine\n"}))
	path := filepath.Join(dir, "prove.yaml")
	code, text := screen(t, newConsole(nil), dir, "--dir", dir, "--write-scenario", path)
	clitest.ExpectCode(t, code, couldNotRun)
	golden.Compare(t, "scenario/exists", text)
	if content, err := os.ReadFile(path); err != nil || string(content) != "mine\n" {
		t.Errorf("the file is %q now: %v", content, err)
	}
}

func TestWriteScenarioWithoutAnything(t *testing.T) {
	dir := testenv.Dir(t, ship) // its CRD has no schema
	code, text := screen(t, newConsole(nil), dir, "--dir", dir, "--write-scenario", filepath.Join(dir, "prove.yaml"))
	clitest.ExpectCode(t, code, couldNotRun)
	golden.Compare(t, "scenario/nothing", text)
}
