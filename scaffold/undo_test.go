// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/generate"
)

// generated runs the generators, as the verbs do.
func generated(t *testing.T, plan *Plan) {
	t.Helper()
	if !plan.Generate {
		return
	}
	if _, err := generate.Run(t.Context(), generate.Options{Dir: plan.Dir, CacheDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
}

func TestDeleteUndoesCreate(t *testing.T) {
	type step func(t *testing.T, dir string) (*Plan, error)
	api := func(change func(*APIOptions)) step {
		return func(_ *testing.T, dir string) (*Plan, error) {
			o := frigate(dir)
			if change != nil {
				change(&o)
			}
			return CreateAPI(o)
		}
	}
	webhook := func(o WebhookOptions) step {
		return func(_ *testing.T, dir string) (*Plan, error) {
			o.Dir, o.Group, o.Version, o.Kind = dir, "ship", "v1", "Frigate"
			return CreateWebhook(o)
		}
	}
	remove := func(version, kind string, from func(DeleteOptions) (*Plan, error)) step {
		return func(_ *testing.T, dir string) (*Plan, error) {
			return from(DeleteOptions{Dir: dir, Group: "ship", Version: version, Kind: kind})
		}
	}
	second := func(o *APIOptions) { o.Version = "v2" }
	raft := func(o *APIOptions) { o.Kind = "Raft" }
	admission := webhook(WebhookOptions{Defaulting: true, Validation: true})
	conversion := webhook(WebhookOptions{Conversion: true})
	tests := map[string]struct {
		multigroup bool
		generate   bool   // loading packages takes a while, so that not all do it
		before     []step // what stays
		steps      []step
		undo       []step
	}{
		"a kind":           {generate: true, steps: []step{api(nil)}, undo: []step{remove("v1", "Frigate", DeleteAPI)}},
		"multigroup":       {multigroup: true, steps: []step{api(nil)}, undo: []step{remove("v1", "Frigate", DeleteAPI)}},
		"an empty kind":    {steps: []step{api(func(o *APIOptions) { o.Empty = true })}, undo: []step{remove("v1", "Frigate", DeleteAPI)}},
		"a cluster scope":  {steps: []step{api(func(o *APIOptions) { o.ClusterScoped = true })}, undo: []step{remove("v1", "Frigate", DeleteAPI)}},
		"names":            {steps: []step{api(func(o *APIOptions) { o.Plural, o.ShortName = "fleet", "fg" })}, undo: []step{remove("v1", "Frigate", DeleteAPI)}},
		"types only":       {steps: []step{api(func(o *APIOptions) { o.NoController = true })}, undo: []step{remove("v1", "Frigate", DeleteAPI)}},
		"webhooks":         {before: []step{api(nil)}, steps: []step{admission}, undo: []step{remove("v1", "Frigate", DeleteWebhook)}},
		"webhooks and all": {generate: true, steps: []step{api(nil), admission}, undo: []step{remove("v1", "Frigate", DeleteAPI)}},
		"webhooks in two steps": {
			before: []step{api(nil)},
			steps:  []step{webhook(WebhookOptions{Defaulting: true}), webhook(WebhookOptions{Validation: true})},
			undo:   []step{remove("v1", "Frigate", DeleteWebhook)},
		},
		"a second version": {before: []step{api(nil)}, steps: []step{api(second)}, undo: []step{remove("v2", "Frigate", DeleteAPI)}},
		"the first of two versions": {
			generate: true, steps: []step{api(nil), api(second)}, undo: []step{remove("v1", "Frigate", DeleteAPI), remove("v2", "Frigate", DeleteAPI)},
		},
		"conversion": {before: []step{api(nil), api(second)}, steps: []step{conversion}, undo: []step{remove("v1", "Frigate", DeleteWebhook)}},
		"conversion besides admission": {
			before: []step{api(nil), api(second)}, steps: []step{conversion, admission}, undo: []step{remove("v1", "Frigate", DeleteWebhook)},
		},
		"a kind besides another": {before: []step{api(nil)}, steps: []step{api(raft)}, undo: []step{remove("v1", "Raft", DeleteAPI)}},
		"a kind with webhooks besides another with webhooks": {
			before: []step{api(nil), admission}, steps: []step{api(raft), func(_ *testing.T, dir string) (*Plan, error) {
				return CreateWebhook(WebhookOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Raft", Validation: true})
			}},
			undo: []step{remove("v1", "Raft", DeleteAPI)},
		},
	}
	starters, err := Starters()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range starters {
		test := tests["a kind"]
		test.generate = false
		test.steps = []step{api(func(o *APIOptions) { o.From = one.Name })}
		tests["from "+one.Name] = test
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			o := inits(dir)
			o.MultiGroup = test.multigroup
			must(t)(Init(o))
			run := func(steps []step) {
				t.Helper()
				for _, one := range steps {
					plan := must(t)(one(t, dir))
					if len(plan.Remaining) > 0 {
						t.Errorf("there remain %q", plan.Remaining)
					}
					if test.generate {
						generated(t, plan)
					}
				}
			}
			run(test.before)
			before := snapshot(t, dir)
			run(test.steps)
			run(test.undo)
			expectSame(t, before, snapshot(t, dir))
		})
	}
}

// A package that stays needs what its own tests import.
func TestPackagesThatTestsNeedStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	for _, kind := range []string{"Frigate", "Raft"} {
		o := frigate(dir)
		o.Kind, o.From = kind, "robot"
		must(t)(CreateAPI(o))
	}
	if err := os.Remove(filepath.Join(dir, "internal", "controller", "raft_controller_test.go")); err != nil {
		t.Fatal(err)
	}
	must(t)(DeleteAPI(DeleteOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate"}))
	for _, name := range []string{"pass.go", "children_test.go", "passtest/passtest.go"} {
		if _, err := os.Stat(filepath.Join(dir, "internal", "pass", name)); err != nil {
			t.Errorf("it should stay: %v", err)
		}
	}
}

func TestEditedFiles(t *testing.T) {
	edited := func(t *testing.T) DeleteOptions {
		t.Helper()
		dir := t.TempDir()
		must(t)(Init(inits(dir)))
		must(t)(CreateAPI(frigate(dir)))
		controller := filepath.Join(dir, "internal/controller/frigate_controller.go")
		content, err := os.ReadFile(controller)
		if err != nil {
			t.Fatal(err)
		}
		put(t, dir, "internal/controller/frigate_controller.go", string(content)+"\n// Mine.\n")
		put(t, dir, "config/crd/bases/ship.example.com_frigates.yaml", "generated")
		return DeleteOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate"}
	}
	need := []string{"internal/controller/frigate_controller.go", "api/v1/frigate_types.go", "api/v1/groupversion_info.go"}
	t.Run("are a reason to refuse", func(t *testing.T) {
		o := edited(t)
		before := snapshot(t, o.Dir)
		plan, err := DeleteAPI(o)
		var refused *EditedError
		if !errors.As(err, &refused) || plan != nil {
			t.Fatalf("got %+v, %v", plan, err)
		}
		for _, name := range need {
			if !slices.Contains(refused.Files, name) {
				t.Errorf("%s is not listed in %q", name, refused.Files)
			}
		}
		expectSame(t, before, snapshot(t, o.Dir))
		// It can be done afterwards in any other way.
		o.Force = true
		must(t)(DeleteAPI(o))
	})
	t.Run("can be kept", func(t *testing.T) {
		o := edited(t)
		o.KeepEdited = true
		plan := must(t)(DeleteAPI(o))
		// What would be generated from the types again stays as well.
		for _, name := range append(need, "config/crd/bases/ship.example.com_frigates.yaml") {
			if _, err := os.Stat(filepath.Join(o.Dir, name)); err != nil || !slices.Contains(plan.Remaining, name) {
				t.Errorf("%s does not remain (%v)", name, err)
			}
		}
		if !slices.Contains(plan.Changes, Change{Path: "config/samples/ship_v1_frigate.yaml", Kind: Remove}) {
			t.Error("the sample is not removed")
		}
		if strings.Contains(string(plan.Content("cmd/main.go")), "FrigateReconciler") {
			t.Error("main still runs the controller")
		}
	})
	t.Run("can be removed", func(t *testing.T) {
		o := edited(t)
		o.Force = true
		if plan := must(t)(DeleteAPI(o)); len(plan.Remaining) > 0 {
			t.Errorf("there remain %q", plan.Remaining)
		}
		if _, err := os.Stat(filepath.Join(o.Dir, "api")); err == nil {
			t.Error("api is still there")
		}
	})
}
