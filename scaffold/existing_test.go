// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// replaceIn changes all occurrences of a text in a file, like a user who renames something.
func replaceIn(t *testing.T, file, before, after string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), before) {
		t.Fatalf("%s has no %q", file, before)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(content), before, after)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// kubebuilder calls the package of group batch batchv1, in main as well; what is added has to use that name.
func TestPackagesThatMainImportsAlready(t *testing.T) {
	for name, multigroup := range map[string]bool{"one group": false, "several": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := inits(dir)
			o.MultiGroup = multigroup
			must(t)(Init(o))
			kind := func(name string) APIOptions {
				return APIOptions{Dir: dir, Group: "batch", Version: "v1", Kind: name}
			}
			admission := func(name string) WebhookOptions {
				return WebhookOptions{Dir: dir, Group: "batch", Version: "v1", Kind: name, Defaulting: true, Validation: true}
			}
			must(t)(CreateAPI(kind("CronJob")))
			must(t)(CreateWebhook(admission("CronJob")))
			main := filepath.Join(dir, filepath.FromSlash(mainFile))
			replaceIn(t, main, "ownbatchv1", "batchv1")
			before := snapshot(t, dir)

			must(t)(CreateAPI(kind("Robot")))
			must(t)(CreateWebhook(admission("Robot")))
			content, err := os.ReadFile(main)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(content), "ownbatchv1") {
				t.Errorf("main uses a name that it does not import:\n%s", content)
			}
			if !strings.Contains(string(content), "SetupRobotWebhookWithManager") || !strings.Contains(string(content), "RobotReconciler") {
				t.Errorf("main does not set up the kind:\n%s", content)
			}
			must(t)(DeleteAPI(DeleteOptions{Dir: dir, Group: "batch", Version: "v1", Kind: "Robot"}))
			expectSame(t, before, snapshot(t, dir))
		})
	}
}

// kubebuilder calls the package with a group's controllers like the group; a folder can hold but one package.
func TestControllersOfAGroupAreOnePackage(t *testing.T) {
	dir := t.TempDir()
	o := inits(dir)
	o.MultiGroup = true
	must(t)(Init(o))
	expectPackage := func(file, want string) {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(content), "\npackage "+want+"\n") {
			t.Errorf("%s is not of package %s", file, want)
		}
	}
	must(t)(CreateAPI(APIOptions{Dir: dir, Group: "sea-creatures", Version: "v1", Kind: "Kraken"}))
	const kraken = "internal/controller/sea-creatures/kraken_controller.go"
	expectPackage(kraken, "seacreatures")

	replaceIn(t, filepath.Join(dir, filepath.FromSlash(kraken)), "package seacreatures", "package controller")
	must(t)(CreateAPI(APIOptions{Dir: dir, Group: "sea-creatures", Version: "v1", Kind: "Leviathan"}))
	expectPackage("internal/controller/sea-creatures/leviathan_controller.go", "controller")

	must(t)(CreateAPI(APIOptions{Dir: dir, Group: "type", Version: "v1", Kind: "Letter"}))
	expectPackage("internal/controller/type/letter_controller.go", "controller")
}

// TestVersionsShareAShortName sees that a CRD does not lose its short name, or have it by chance, with another version.
func TestVersionsShareAShortName(t *testing.T) {
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	first := frigate(dir)
	first.ShortName = "fg"
	must(t)(CreateAPI(first))
	second := frigate(dir)
	second.Version = "v2"
	must(t)(CreateAPI(second))
	for _, version := range []string{"v1", "v2"} {
		content, err := os.ReadFile(filepath.Join(dir, "api", version, "frigate_types.go"))
		if err != nil {
			t.Fatal(err)
		}
		if found := shortNamePattern.FindSubmatch(content); found == nil || string(found[1]) != "fg" {
			t.Errorf("%s has the short name %q", version, found)
		}
	}
}
