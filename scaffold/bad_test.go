// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// put writes a file below a folder.
func put(t *testing.T, dir, name, content string) {
	t.Helper()
	file := filepath.Join(dir, name)
	testenv.WriteFile(t, file, content)
}

// expectRefused checks that an error says what is wrong, and that nothing has happened.
func expectRefused(t *testing.T, dir string, before map[string]string, plan *Plan, err error, problem string) {
	t.Helper()
	var wrong *InputError
	switch {
	case err == nil:
		t.Errorf("it was not refused: %+v", plan.Changes)
	case !errors.As(err, &wrong):
		t.Errorf("it is not said that the input is wrong: %v", err)
	case !strings.Contains(err.Error()+strings.Join(wrong.Hints, "\n"), problem):
		t.Errorf("got %q with hints %q, want %q", err, wrong.Hints, problem)
	}
	expectSame(t, before, snapshot(t, dir))
}

func TestInitRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		change  func(*InitOptions)
		problem string
	}{
		"a folder with code": {
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				put(t, dir, "main.go", "package main")
			},
			problem: "is not empty: it contains main.go",
		},
		"a folder with a project": {
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				put(t, dir, "PROJECT", "version: '3'")
			},
			problem: "already contains a project",
		},
		"a module of another name": {
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				put(t, dir, "go.mod", "module example.com/other\n")
			},
			problem: `"example.com/other", not "example.com/yard"`,
		},
		"no domain":                  {change: func(o *InitOptions) { o.Domain = "" }, problem: "domain"},
		"a domain with blanks":       {change: func(o *InitOptions) { o.Domain = "my domain" }, problem: `"my domain" is not a valid domain`},
		"a domain in other letters":  {change: func(o *InitOptions) { o.Domain = "”项目名“" }, problem: "is not a valid domain"},
		"a domain in capitals":       {change: func(o *InitOptions) { o.Domain = "Example.com" }, problem: "is not a valid domain"},
		"an unknown license":         {change: func(o *InitOptions) { o.License = "gpl9" }, problem: "apache2, mit, copyright, none"},
		"a module path with blanks":  {change: func(o *InitOptions) { o.Repo = "example.com/my yard" }, problem: "is not a valid path of a Go module"},
		"a module path from above":   {change: func(o *InitOptions) { o.Repo = "../yard" }, problem: "is not a valid path of a Go module"},
		"a project name in capitals": {change: func(o *InitOptions) { o.ProjectName = "Yard" }, problem: `"Yard" is not a valid project name`},
		"a number for a project":     {change: func(o *InitOptions) { o.ProjectName = "001" }, problem: "begin with a letter"},
		"a truth for a project":      {change: func(o *InitOptions) { o.ProjectName = "true" }, problem: "YAML reads it as true"},
		"a long project name":        {change: func(o *InitOptions) { o.ProjectName = strings.Repeat("y", 51) }, problem: "at most 50"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.prepare != nil {
				test.prepare(t, dir)
			}
			before := snapshot(t, dir)
			o := inits(dir)
			if test.change != nil {
				test.change(&o)
			}
			plan, err := Init(o)
			expectRefused(t, dir, before, plan, err, test.problem)
		})
	}
}

func TestCreateAPIRefuses(t *testing.T) {
	replace := func(name, from, to string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || !strings.Contains(string(content), from) {
				t.Fatalf("%s has no %q (%v)", name, from, err)
			}
			put(t, dir, name, strings.Replace(string(content), from, to, 1))
		}
	}
	for name, test := range map[string]struct {
		prepare func(t *testing.T, dir string)
		change  func(*APIOptions)
		problem string
	}{
		"no project":             {prepare: remove("PROJECT"), problem: "has no PROJECT file"},
		"no Go module":           {prepare: remove("go.mod"), problem: "no go.mod"},
		"a PROJECT of version 2": {prepare: replace("PROJECT", `version: "3"`, `version: "2"`), problem: `version "2"`},
		"no PROJECT at all":      {prepare: func(t *testing.T, dir string) { t.Helper(); put(t, dir, "PROJECT", ":::\n") }, problem: "its PROJECT file has no version"},
		"an older layout":        {prepare: replace("PROJECT", "go.kubebuilder.io/v4", "go.kubebuilder.io/v3"), problem: "create a new project with opdock init"},
		"another layout":         {prepare: replace("PROJECT", "go.kubebuilder.io/v4", "helm.sdk.operatorframework.io/v1"), problem: "helm.sdk.operatorframework.io/v1"},
		"no marker for imports":  {change: boatV2, prepare: replace("cmd/main.go", "// +kubebuilder:scaffold:imports", ""), problem: "// +kubebuilder:scaffold:imports"},
		"no marker for schemes":  {change: boatV2, prepare: replace("cmd/main.go", "// +kubebuilder:scaffold:scheme", ""), problem: "// +kubebuilder:scaffold:scheme"},
		"no marker for builders": {prepare: replace("cmd/main.go", "// +kubebuilder:scaffold:builder", ""), problem: "SetupWithManager(mgr)"},
		"main does not parse":    {prepare: replace("cmd/main.go", "func main() {", "func main( {"), problem: "cmd/main.go"},
		"no main":                {prepare: remove("cmd/main.go"), problem: "file cmd/main.go does not exist"},
		"a file in the way": {
			prepare: func(t *testing.T, dir string) {
				t.Helper()
				put(t, dir, "api/v1/frigate_types.go", "package v1\n")
			},
			problem: "already exist: api/v1/frigate_types.go",
		},
		"a kind in small letters":    {change: kind("frigate"), problem: "use: --kind Frigate"},
		"a kind of two words":        {change: kind("tea-pot"), problem: "use: --kind TeaPot"},
		"a kind that is a digit":     {change: kind("9Lives"), problem: "is not a valid kind"},
		"no kind":                    {change: kind(""), problem: "--version and --kind are required"},
		"a kind that registers":      {change: kind("GroupVersion"), problem: "the code that registers kinds"},
		"a kind that is too long":    {change: kind("F" + strings.Repeat("r", 50)), problem: "too long"},
		"a version without v":        {change: func(o *APIOptions) { o.Version = "1" }, problem: `"1" is not a valid version`},
		"a version of a release":     {change: func(o *APIOptions) { o.Version = "v1.2" }, problem: "is not a valid version"},
		"a group in capitals":        {change: group("Ship"), problem: `"Ship" is not a valid group`},
		"a group with the domain":    {change: group("ship.example.com"), problem: `use: --group "ship"`},
		"a group that is internal":   {change: group("internal"), problem: "specially"},
		"a group that ends in a dot": {change: group("ship."), problem: "is not a valid group"},
		"a plural in capitals":       {change: func(o *APIOptions) { o.Plural = "Frigates" }, problem: "is not a valid plural"},
		"a plural that is taken":     {change: func(o *APIOptions) { o.Kind, o.Plural = "Raft", "boats" }, problem: "already used by Boat v1"},
		"a kind that is there":       {change: kind("Boat"), problem: "opdock delete api --group ship --version v1 --kind Boat"},
		"a kind of another case":     {change: func(o *APIOptions) { o.Kind, o.Plural = "BOAT", "others" }, problem: "only in case"},
		"a kind that is a list":      {change: kind("BoatList"), problem: "the same type"},
		"another scope":              {change: func(o *APIOptions) { o.Kind, o.Version, o.ClusterScoped = "Boat", "v2", true }, problem: "another scope"},
		"a second group":             {change: group("sea"), problem: "multigroup: true"},
		"an unknown starter":         {change: func(o *APIOptions) { o.From = "nonsense" }, problem: `starter "nonsense" does not exist`},
		"empty from a starter":       {change: func(o *APIOptions) { o.From, o.Empty = "robot", true }, problem: "--empty cannot be used with --from"},
		"nothing to make":            {change: func(o *APIOptions) { o.NoResource, o.NoController = true, true }, problem: "nothing to create"},
		"types that do not exist":    {change: func(o *APIOptions) { o.NoResource = true }, problem: "remove --resource=false"},
		"a bad short name":           {change: func(o *APIOptions) { o.ShortName = "F G" }, problem: "short name"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t)(Init(inits(dir)))
			boat := frigate(dir)
			boat.Kind = "Boat"
			must(t)(CreateAPI(boat))
			if test.prepare != nil {
				test.prepare(t, dir)
			}
			before := snapshot(t, dir)
			o := frigate(dir)
			if test.change != nil {
				test.change(&o)
			}
			plan, err := CreateAPI(o)
			expectRefused(t, dir, before, plan, err, test.problem)
		})
	}
}

func boatV2(o *APIOptions) { o.Kind, o.Version = "Boat", "v2" }

func kind(name string) func(*APIOptions)  { return func(o *APIOptions) { o.Kind = name } }
func group(name string) func(*APIOptions) { return func(o *APIOptions) { o.Group = name } }

func remove(name string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCreateWebhookRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		options WebhookOptions
		edit    bool
		problem string
	}{
		"none":                  {options: WebhookOptions{Version: "v1", Kind: "Frigate"}, problem: "no webhook was selected"},
		"an unknown kind":       {options: WebhookOptions{Version: "v1", Kind: "Raft", Defaulting: true}, problem: "existing: --group ship --version v1 --kind Frigate"},
		"what is there":         {options: WebhookOptions{Version: "v1", Kind: "Frigate", Defaulting: true}, problem: "opdock delete webhook"},
		"no version to convert": {options: WebhookOptions{Version: "v1", Kind: "Frigate", Conversion: true}, problem: "opdock create api --group ship --version v2"},
		"an unknown spoke":      {options: WebhookOptions{Version: "v1", Kind: "Frigate", Conversion: true, Spokes: []string{"v3"}}, problem: "version v3 of Frigate does not exist"},
		"spokes alone":          {options: WebhookOptions{Version: "v1", Kind: "Frigate", Validation: true, Spokes: []string{"v2"}}, problem: "--spoke needs --conversion"},
		"an edited file":        {options: WebhookOptions{Version: "v1", Kind: "Frigate", Validation: true}, edit: true, problem: "has been edited where"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t)(Init(inits(dir)))
			must(t)(CreateAPI(frigate(dir)))
			must(t)(CreateWebhook(WebhookOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate", Defaulting: true}))
			if test.edit {
				put(t, dir, "internal/webhook/v1/frigate_webhook.go", "package v1\n")
			}
			before := snapshot(t, dir)
			test.options.Dir, test.options.Group = dir, "ship"
			plan, err := CreateWebhook(test.options)
			expectRefused(t, dir, before, plan, err, test.problem)
		})
	}
}

func TestDeleteRefuses(t *testing.T) {
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	must(t)(CreateAPI(frigate(dir)))
	second := frigate(dir)
	second.Version = "v2"
	must(t)(CreateAPI(second))
	must(t)(CreateWebhook(WebhookOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Frigate", Conversion: true}))
	before := snapshot(t, dir)
	plan, err := DeleteAPI(DeleteOptions{Dir: dir, Group: "ship", Version: "v2", Kind: "Frigate"})
	expectRefused(t, dir, before, plan, err, "opdock delete webhook")
	plan, err = DeleteAPI(DeleteOptions{Dir: dir, Group: "ship", Version: "v1", Kind: "Raft"})
	expectRefused(t, dir, before, plan, err, "Raft of ship/v1 does not exist")
	plan, err = DeleteWebhook(DeleteOptions{Dir: dir, Group: "ship", Version: "v2", Kind: "Frigate"})
	expectRefused(t, dir, before, plan, err, "has no webhooks")
}

func TestAWriteThatFailsChangesNothing(t *testing.T) {
	dir := t.TempDir()
	must(t)(Init(inits(dir)))
	plan, err := CreateAPI(frigate(dir))
	if err != nil {
		t.Fatal(err)
	}
	// A file where a folder is needed: it is found while the new files are put beside the old ones.
	put(t, dir, "api", "in the way")
	before := snapshot(t, dir)
	if err := plan.Write(t.Context(), nil); err == nil {
		t.Fatal("no error")
	}
	expectSame(t, before, snapshot(t, dir))
	if err := os.Remove(filepath.Join(dir, "api")); err != nil {
		t.Fatal(err)
	}
	before = snapshot(t, dir)
	failed := errors.New("what belongs to it has failed")
	err = plan.Write(t.Context(), func(context.Context) error {
		if maps.Equal(before, snapshot(t, dir)) {
			t.Error("nothing was written")
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	expectSame(t, before, snapshot(t, dir))
}

func TestUnusualNames(t *testing.T) {
	for name, test := range map[string]struct {
		multigroup bool
		change     func(*APIOptions)
		files      []string
		alias      string
	}{
		"capitals":          {change: kind("KAPP"), alias: "shipv1", files: []string{"api/v1/kapp_types.go", "config/rbac/kapp_admin_role.yaml"}},
		"a word of Go":      {change: kind("Type"), alias: "shipv1", files: []string{"internal/controller/type_controller.go"}},
		"a group with dots": {change: group("collector.ip"), alias: "collectoripv1", files: []string{"config/samples/collector.ip_v1_frigate.yaml"}},
		"a group with dots in a folder": {
			multigroup: true, change: group("collector.ip"), alias: "collectoripv1",
			files: []string{"api/collector.ip/v1/frigate_types.go", "internal/controller/collector.ip/frigate_controller.go"},
		},
		"no group":             {change: group(""), alias: "examplecomv1", files: []string{"config/samples/v1_frigate.yaml"}},
		"no group in a folder": {multigroup: true, change: group(""), alias: "examplecomv1", files: []string{"api/v1/frigate_types.go"}},
		"a group with a digit": {change: group("3d"), alias: "g3dv1", files: []string{"api/v1/groupversion_info.go"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := inits(dir)
			o.MultiGroup = test.multigroup
			must(t)(Init(o))
			api := frigate(dir)
			test.change(&api)
			plan := must(t)(CreateAPI(api))
			for _, file := range test.files {
				if !slices.Contains(plan.Changes, Change{Path: file, Kind: Create}) {
					t.Errorf("%s is not created", file)
				}
			}
			if !strings.Contains(string(plan.Content("cmd/main.go")), "utilruntime.Must("+test.alias+".AddToScheme(scheme))") {
				t.Errorf("the types are not registered as %s", test.alias)
			}
		})
	}
}
