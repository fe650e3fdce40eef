// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Another version of a kind begins as a copy of what there is, not of the example that the first one began with.
func TestAnotherVersionIsACopy(t *testing.T) {
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	kind := func(version string) APIOptions {
		return APIOptions{Dir: dir, Group: "ship", Version: version, Kind: "Frigate"}
	}
	read := func(name string) string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	must(t)(CreateAPI(kind("v1")))
	replaceIn(t, filepath.Join(dir, "api/v1/frigate_types.go"), "	// replicas is", "	// hull is what it is made of.\n	Hull Wood `json:\"hull\"`\n\n	// replicas is")
	replaceIn(t, filepath.Join(dir, "config/samples/ship_v1_frigate.yaml"), "  replicas: 2", "  replicas: 2\n  hull: oak")
	if err := os.WriteFile(filepath.Join(dir, "api/v1/hull.go"), []byte("package v1\n\n// Wood is what ships are made of.\ntype Wood string\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	must(t)(CreateAPI(kind("v2")))
	for name, parts := range map[string][]string{
		"api/v2/frigate_types.go":             {"\npackage v2\n", "Hull Wood `json:\"hull\"`"},
		"api/v2/hull.go":                      {"package v2\n", "type Wood string"},
		"config/samples/ship_v2_frigate.yaml": {"/v2\n", "name: frigate-sample-v2\n", "  hull: oak"},
	} {
		for _, part := range parts {
			if !strings.Contains(read(name), part) {
				t.Errorf("%s has no %q:\n%s", name, part, read(name))
			}
		}
	}
	if strings.Contains(read("api/v2/frigate_types.go"), "storageversion") || !strings.Contains(read("api/v1/frigate_types.go"), "storageversion") {
		t.Error("v1 alone is stored")
	}
	must(t)(DeleteAPI(DeleteOptions{Dir: dir, Group: "ship", Version: "v2", Kind: "Frigate"}))
	expectSame(t, before, snapshot(t, dir))

	// Types that belong to another kind cannot be copied with this one.
	must(t)(CreateAPI(APIOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Sloop"}))
	replaceIn(t, filepath.Join(dir, "api/v1/sloop_types.go"), "	// replicas is", "	// escort sails along.\n	Escort FrigateSpec `json:\"escort,omitempty\"`\n\n	// replicas is")
	must(t)(CreateAPI(APIOptions{Dir: dir, Group: "ship", Version: "v2", Kind: "Sloop"}))
	if types := read("api/v2/sloop_types.go"); strings.Contains(types, "Escort") || !strings.Contains(types, "Image string") {
		t.Errorf("got\n%s", types)
	}
}

// A user who has edited the validator can still add conversion.
func TestConversionBesideAnEditedWebhook(t *testing.T) {
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	for _, version := range []string{"v1", "v2"} {
		must(t)(CreateAPI(APIOptions{Dir: dir, Group: "ship", Version: version, Kind: "Frigate"}))
	}
	webhook := WebhookOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate", Validation: true}
	must(t)(CreateWebhook(webhook))
	file := filepath.Join(dir, "internal/webhook/v1/frigate_webhook.go")
	tests := filepath.Join(dir, "internal/webhook/v1/frigate_webhook_test.go")
	replaceIn(t, file, `"names that begin with kube- belong to the cluster"`, `"a name of the cluster"`)
	replaceIn(t, tests, `"a name of others":`, `"a name of somebody":`)
	webhook.Validation, webhook.Conversion = false, true
	must(t)(CreateWebhook(webhook))
	for name, parts := range map[string][]string{
		file:  {`"a name of the cluster"`, "This includes conversion"},
		tests: {`"a name of somebody":`, "func TestFrigateIsConvertedTov2AndBack"},
	} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(content), part) {
				t.Errorf("%s has no %q:\n%s", name, part, content)
			}
		}
	}
	// What is edited where something new would go is refused.
	webhook.Conversion, webhook.Defaulting = false, true
	replaceIn(t, file, "		WithValidator(", "		WithMyOwn(1).\n		WithValidator(")
	replaceIn(t, file, "	return ctrl.NewWebhookManagedBy(", "	return mine.NewWebhookManagedBy(")
	if _, err := CreateWebhook(webhook); err == nil || !strings.Contains(err.Error(), "internal/webhook/v1/frigate_webhook.go has been edited") {
		t.Errorf("got %v", err)
	}
}
