// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestDocumentedConfig reads the configuration in the documentation, which has to name every setting.
func TestDocumentedConfig(t *testing.T) {
	page, err := os.ReadFile("../docs/generate.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```yaml\n(generate:.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("there is no configuration")
	}
	var parsed File
	if err := yaml.UnmarshalStrict(block[1], &parsed); err != nil {
		t.Fatal(err)
	}
	var named map[string]map[string]any
	if err := yaml.Unmarshal(block[1], &named); err != nil {
		t.Fatal(err)
	}
	expectSettings(t, "generate", reflect.TypeFor[Config](), named["generate"])
}

func expectSettings(t *testing.T, path string, settings reflect.Type, named map[string]any) {
	t.Helper()
	for i := range settings.NumField() {
		field := settings.Field(i)
		if !field.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		value, found := named[name]
		if !found {
			t.Errorf("%s.%s is not documented", path, name)
		}
		if field.Type.Kind() == reflect.Struct {
			nested, _ := value.(map[string]any)
			expectSettings(t, path+"."+name, field.Type, nested)
		}
	}
}

func TestOptionsWinOverTheConfiguration(t *testing.T) {
	dir := plain().
		with(ConfigFileName, "generate: {paths: [./lib], headerFile: a.txt, crd: {dir: crds}, client: {dir: clients}, rbac: {roleName: r}}").
		with("a.txt", "").with("b.txt", "").with("hack/boilerplate.go.txt", "").write(t)
	m := module{dir: dir, path: "example.com/plain"}
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"none": {Options{}, `{"paths":["./lib"],"headerFile":"a.txt","crd":{"dir":"crds"},"rbac":{"dir":"config/rbac","roleName":"r","fileName":"role.yaml"},"webhook":{"dir":"config/webhook"},"client":{"dir":"clients"}}`},
		"all": {
			Options{Paths: []string{"./api/..."}, HeaderFile: "b.txt", CRDDir: "1", RBACDir: "2", WebhookDir: "3", ClientDir: "4", OpenAPIDir: "5"},
			`{"paths":["./api/..."],"headerFile":"b.txt","crd":{"dir":"1"},"rbac":{"dir":"2","roleName":"r","fileName":"role.yaml"},"webhook":{"dir":"3"},"client":{"dir":"4"},"openapi":{"dir":"5"}}`,
		},
	} {
		config, err := loadConfig(m, test.options)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != test.want {
			t.Errorf("%s: got\n  %s\nwant\n  %s", name, got, test.want)
		}
	}
	if err := os.Remove(m.absolute(ConfigFileName)); err != nil {
		t.Fatal(err)
	}
	if config, err := loadConfig(m, Options{}); err != nil || config.HeaderFile != defaultHeaderFile {
		t.Errorf("got header %q, %v", config.HeaderFile, err)
	}
}
