// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestLoad(t *testing.T) {
	s, err := Load("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	object := func(fields map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: fields}
	}
	ship := Ref{Kind: "Frigate", Name: "ship"}
	want := &Scenario{
		File: "testdata/full.yaml",
		Steps: []Step{
			{Name: "what it needs", Line: 7, Apply: &Apply{Objects: []*unstructured.Unstructured{
				object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": map[string]any{}}),
				object(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "two"}}),
				object(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "token", "namespace": "fleet"},
					"stringData": map[string]any{"on": true, "quoted": "yes", "day": "2026-01-01", "mode": int64(0o644), "share": 0.5, "empty": nil}}),
			}}},
			{Name: "create", Line: 14, Apply: &Apply{Objects: []*unstructured.Unstructured{
				object(map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Frigate", "metadata": map[string]any{"name": "ship"}, "spec": map[string]any{"size": int64(2)}}),
			}}},
			{Name: "ready", Line: 21, Wait: &Wait{Ref: ship, Condition: "Ready", Status: "True", Timeout: 30 * time.Second}},
			{Name: "grow", Line: 23, Patch: []Patch{{
				Ref:   Ref{Kind: "Frigate", Namespace: "fleet", Name: "ship"},
				Merge: map[string]any{"spec": map[string]any{"size": int64(3), "image": nil}},
			}}},
			{Name: "shrink", Line: 30, Patch: []Patch{
				{Ref: Ref{APIVersion: "sea.example.com/v1", Kind: "Frigate", Name: "ship"}, JSON: []Operation{
					{Op: "replace", Path: "/spec/size", Value: int64(1)},
					{Op: "remove", Path: "/spec/image"},
					{Op: "move", From: "/a", Path: "/b"},
					{Op: "add", Path: "/spec/none"},
				}},
				{Ref: ship, Merge: map[string]any{"spec": map[string]any{"size": int64(4)}}},
			}},
			{Name: "scale", Line: 41, Scale: &Scale{Ref: ship}},
			{Name: "remove one", Line: 43, Delete: &Delete{Ref: Ref{Kind: "Secret", Name: "token"}}},
			{Name: "remove another", Line: 45, Delete: &Delete{Ref: Ref{Kind: "ConfigMap", Namespace: "fleet", Name: "one"}}},
			{Name: "remove all", Line: 47, Delete: &Delete{All: true}},
		},
		Ignore: []Ignore{{Verdict: "rest-writes", Family: "slow", Object: "Frigate", Field: "status.seenAt", Reason: "it counts on purpose"}},
		Settle: Settle{Quiet: 500 * time.Millisecond, Bound: time.Minute},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
	kind, data, err := s.Steps[4].Patch[0].Data()
	if got := string(data); err != nil || kind != "application/json-patch+json" ||
		got != `[{"op":"replace","path":"/spec/size","value":1},{"op":"remove","path":"/spec/image"},{"from":"/a","op":"move","path":"/b"},{"op":"add","path":"/spec/none","value":null}]` {
		t.Errorf("%s %s, %v", kind, got, err)
	}
	kind, data, err = s.Steps[3].Patch[0].Data()
	if got := string(data); err != nil || kind != "application/merge-patch+json" || got != `{"spec":{"image":null,"size":3}}` {
		t.Errorf("%s %s, %v", kind, got, err)
	}
}

// What is written is read as the same.
func TestYAML(t *testing.T) {
	s, err := Load("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("testdata/full.yaml", text, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for i := range again.Steps {
		again.Steps[i].Line = s.Steps[i].Line
	}
	if diff := cmp.Diff(s, again); diff != "" {
		t.Errorf("%s\n%s", diff, text)
	}
}

const head = "apiVersion: opdock.dev/v1alpha1\nkind: Scenario\n"

func TestMistakes(t *testing.T) {
	step := func(action string) string { return head + "steps:\n- name: one\n  " + action + "\n" }
	ok := "steps:\n- {name: one, delete: A/b}\n"
	for name, test := range map[string]struct{ text, want string }{
		"empty":                  {"# nothing\n", "s.yaml:1:1: the scenario is empty"},
		"not YAML":               {head + "steps: [\n", "s.yaml:3:1: not YAML"},
		"bad indentation":        {head + "steps:\n  - a: b\n   c: d\n", "s.yaml:"},
		"a list":                 {"- a\n", "s.yaml:1:1: a scenario has fields (apiVersion, kind, metadata, steps, ignore, settle), but here is a list"},
		"two documents":          {head + ok + "---\nkind: Scenario\n", "s.yaml:6:1: a file holds one scenario"},
		"no version":             {"kind: Scenario\n" + ok, "s.yaml:1:1: apiVersion is missing: write apiVersion: opdock.dev/v1alpha1"},
		"other version":          {"apiVersion: v1\nkind: Scenario\n" + ok, `s.yaml:1:13: apiVersion must be opdock.dev/v1alpha1, not "v1"`},
		"other kind":             {"apiVersion: opdock.dev/v1alpha1\nkind: Pod\n" + ok, `s.yaml:2:7: kind must be Scenario, not "Pod"`},
		"no steps":               {head, "s.yaml:1:1: a scenario needs steps"},
		"steps empty":            {head + "steps: []\n", "s.yaml:3:8: a scenario needs at least one step"},
		"steps without a value":  {head + "steps:\n", "s.yaml:3:1: steps has no value"},
		"a value missing inside": {step("patch:"), "s.yaml:5:3: patch has no value"},
		"unknown at the top":     {head + ok + "setle: {}\n", `s.yaml:5:1: unknown field "setle": a scenario has apiVersion, kind, metadata, steps, ignore, settle; did you mean settle?`},
		"unknown in a step":      {step("aply: x"), `s.yaml:5:3: unknown field "aply": a step has name, apply, patch, scale, delete, wait; did you mean apply?`},
		"unknown, like nothing":  {step("frobnicate: x"), `s.yaml:5:3: unknown field "frobnicate": a step has name, apply, patch, scale, delete, wait` + "\n"},
		"twice":                  {step("name: two"), "s.yaml:5:3: name is there twice, first in line 4"},
		"no name":                {head + "steps:\n- delete: A/b\n", "s.yaml:4:3: a step needs a name"},
		"same name":              {head + ok + "- {name: one, delete: A/c}\n", `s.yaml:5:3: the step in line 4 has the same name: "one"`},
		"no action":              {head + "steps:\n- name: one\n", "s.yaml:4:3: a step needs one of apply, patch, scale, delete, wait"},
		"two actions":            {step("delete: A/b\n  scale: {kind: A, name: b, replicas: 1}"), "s.yaml:6:10: a step does one thing, but this one has delete and scale: make each a step"},
		"not an object":          {step("apply: {a: b}"), "s.yaml:5:10: an object needs apiVersion"},
		"object without a name":  {step("apply: {apiVersion: v1, kind: A, metadata: {generateName: a-}}"), "s.yaml:5:46: an object needs metadata.name: a generated one differs in each run"},
		"no metadata":            {step("apply: {apiVersion: v1, kind: A}"), "s.yaml:5:10: an object needs metadata.name"},
		"object has it twice":    {step("apply: {apiVersion: v1, kind: A, kind: B}"), "s.yaml:5:36: kind is there twice, first in line 5"},
		"merge key":              {step("apply: {<<: {a: b}}"), "s.yaml:5:11: merge keys (<<) are not supported"},
		"number too large":       {step("apply: {a: 9223372036854775808}"), `s.yaml:5:14: "9223372036854775808" does not fit into 64 bits`},
		"not in JSON":            {step("apply: {a: .nan}"), `s.yaml:5:14: ".nan" is not a number that JSON has`},
		"no file":                {step("apply: none.yaml"), "s.yaml:5:10: cannot read the file to apply (its path is relative to the scenario): open none.yaml: file does not exist"},
		"file without objects":   {step("apply: empty.yaml"), "s.yaml:5:10: empty.yaml holds no objects"},
		"mistake in the file":    {step("apply: bad.yaml"), "bad.yaml:2:1: an object needs kind"},
		"apply an empty list":    {step("apply: []"), "s.yaml:5:10: apply needs at least one object"},
		"apply a list of lists":  {step("apply: [[a]]"), "s.yaml:5:11: apply takes an object, the path of a file, or a list of both"},
		"patch of nothing":       {step("patch: {merge: {}}"), "s.yaml:5:10: patch needs kind"},
		"patch with nothing":     {step("patch: {kind: A, name: b}"), "s.yaml:5:10: patch needs merge (the fields to change) or json (a list of operations)"},
		"patch with both":        {step("patch: {kind: A, name: b, merge: {}, json: []}"), "s.yaml:5:46: patch takes merge or json, not both"},
		"merge of a text":        {step("patch: {kind: A, name: b, merge: x}"), `s.yaml:5:36: merge holds the fields to change, but here is "x"`},
		"json of a mapping":      {step("patch: {kind: A, name: b, json: {}}"), "s.yaml:5:35: json is a list, but here is a mapping"},
		"unknown operation":      {step("patch: {kind: A, name: b, json: [{op: ad, path: /a, value: 1}]}"), `s.yaml:5:41: there is no op "ad": use one of add, remove, replace, move, copy, test; did you mean add?`},
		"no JSON pointer":        {step("patch: {kind: A, name: b, json: [{op: remove, path: spec.a}]}"), "s.yaml:5:55: path is a JSON pointer and begins with /"},
		"add without a value":    {step("patch: {kind: A, name: b, json: [{op: add, path: /a}]}"), "s.yaml:5:36: an operation of json needs value"},
		"scale to a word":        {step("scale: {kind: A, name: b, replicas: many}"), `s.yaml:5:39: replicas is a number from 0 to 2147483647, not "many"`},
		"scale below zero":       {step("scale: {kind: A, name: b, replicas: -1}"), `s.yaml:5:39: replicas is a number from 0 to 2147483647, not "-1"`},
		"scale to nothing":       {step("scale: {kind: A, name: b}"), "s.yaml:5:10: scale needs replicas"},
		"delete a word":          {step("delete: everything"), `s.yaml:5:11: delete takes Kind/name, kind and name, or all: true, not "everything"`},
		"delete all and one":     {step("delete: {all: true, kind: A}"), "s.yaml:5:29: delete takes an object or all: true, not both"},
		"delete all: false":      {step("delete: {all: false}"), `s.yaml:5:17: all is true or absent, not "false"`},
		"delete all of nothing":  {step("delete: {all: true}"), "s.yaml:4:3: delete: {all: true} deletes what steps before it applied, but there is none"},
		"wait for nothing":       {step("wait: {kind: A, name: b}"), "s.yaml:5:9: wait needs for, such as for: Ready=True"},
		"wait for a word":        {step("wait: {kind: A, name: b, for: Ready}"), `s.yaml:5:33: for is Condition=Status, where the status is True, False or Unknown, such as Ready=True; not "Ready"`},
		"wait too short":         {step("wait: {kind: A, name: b, for: A=True, timeout: 5}"), `s.yaml:5:50: timeout is a duration such as 500ms, 30s or 2m, not "5"`},
		"ignore without reason":  {head + ok + "ignore: [{verdict: loop}]\n", "s.yaml:5:10: an entry of ignore needs a reason"},
		"ignore everything":      {head + ok + "ignore: [{reason: r}]\n", "s.yaml:5:10: this entry ignores everything: add verdict, family, object or field"},
		"ignore what is not":     {head + ok + "ignore: [{verdict: lop, reason: r}]\n", `s.yaml:5:20: there is no verdict "lop": use one of panic, exit,`},
		"no such family":         {head + ok + "ignore: [{family: crush, reason: r}]\n", "did you mean crash?"},
		"settle the wrong way":   {head + ok + "settle: {quiet: 2m, bound: 1m}\n", "s.yaml:5:17: quiet (2m0s) must be shorter than bound (1m0s)"},
		"no time for patience":   {head + ok + "settle: {patience: 2m, bound: 1m}\n", "s.yaml:5:20: patience (2m0s) must be shorter than bound (1m0s)"},
		"settle is a text":       {head + ok + "settle: soon\n", `s.yaml:5:9: settle has fields (quiet, patience, bound), but here is "soon"`},
		"an endless loop":        {step("apply: &a {apiVersion: v1, kind: A, metadata: {name: b}, spec: *a}"), "the objects are too large or too deep"},
	} {
		files := func(path string) ([]byte, error) {
			switch path {
			case "empty.yaml":
				return []byte("# nothing\n"), nil
			case "bad.yaml":
				return []byte("---\napiVersion: v1\n"), nil
			}
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		s, err := Parse("s.yaml", []byte(test.text), files)
		if err == nil || s != nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if !strings.Contains(err.Error()+"\n", test.want) {
			t.Errorf("%s:\n got %v\nwant %s", name, err, test.want)
		}
		var problem *MistakeError
		if !errors.As(err, &problem) || problem.Line < 1 || problem.Column < 1 {
			t.Errorf("%s: no position in %v", name, err)
		}
	}
}

// All mistakes are reported at once, in the order of the file, and only so many.
func TestManyMistakes(t *testing.T) {
	_, err := Parse("s.yaml", []byte(head+"steps:\n- {name: a, wat: 1}\n- {delete: A/b}\nignore: [{}]\n"), nil)
	var lines []string
	for line := range strings.Lines(err.Error()) {
		position, _, _ := strings.Cut(line, ": ")
		lines = append(lines, strings.TrimPrefix(position, "s.yaml:"))
	}
	if got, want := strings.Join(lines, ", "), "4:3, 4:13, 5:3, 6:10, 6:10"; got != want {
		t.Errorf("%s, want %s:\n%v", got, want, err)
	}
	_, err = Parse("s.yaml", []byte(head+"steps:\n"+strings.Repeat("- {}\n", 30)), nil)
	if !strings.HasSuffix(err.Error(), "and 40 more") || strings.Count(err.Error(), "\n") != mostProblems {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	full, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	f.Add([]byte(head + "steps: [{name: a, apply: &a {b: *a}}]\n"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nsteps: *b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("s.yaml", data, func(string) ([]byte, error) { return data, nil })
		if (s == nil) == (err == nil) {
			t.Fatalf("%v, %v", s, err)
		}
		if err != nil {
			return
		}
		text, err := s.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("s.yaml", text, nil); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, text)
		}
	})
}

func TestIgnores(t *testing.T) {
	fields := []string{"status.seenAt", "status.seen[0].at"}
	for _, test := range []struct {
		ignore Ignore
		want   bool
	}{
		{Ignore{Verdict: "status"}, true},
		{Ignore{Verdict: "loop"}, false},
		{Ignore{Family: "crash", Verdict: "status"}, true},
		{Ignore{Family: "slow", Verdict: "status"}, false},
		{Ignore{Object: "Frigate"}, true},
		{Ignore{Object: "Frigate ship"}, true},
		{Ignore{Object: "Frigate/ship"}, true},
		{Ignore{Object: "Frigate fleet/ship"}, true},
		{Ignore{Object: "Frigate fleet/*"}, true},
		{Ignore{Object: "* fleet/ship"}, true},
		{Ignore{Object: "Frigate port/ship"}, false},
		{Ignore{Object: "Frig"}, false},
		{Ignore{Object: "Frig*"}, true},
		{Ignore{Field: "status"}, true},
		{Ignore{Field: ".status"}, true},
		{Ignore{Field: "status.seen"}, false},
		{Ignore{Field: "status.seen*"}, true},
		{Ignore{Field: "*"}, true},
		{Ignore{Field: "*.seenAt*at"}, false},
	} {
		if got := test.ignore.Matches("status", "crash", "Frigate fleet/ship", fields); got != test.want {
			t.Errorf("%+v: %v", test.ignore, got)
		}
	}
	if (&Ignore{Field: "status"}).Matches("counts", "crash", "Frigate ship", nil) {
		t.Error("a finding without fields is ignored because of a field")
	}
	s := &Scenario{Ignore: []Ignore{{Verdict: "loop", Reason: "a"}, {Object: "Frigate", Reason: "b"}}}
	if found := s.Ignores("status", "crash", "Frigate ship", nil); found == nil || found.Reason != "b" {
		t.Errorf("%+v", found)
	}
	if found := s.Ignores("status", "crash", "Service ship", nil); found != nil {
		t.Errorf("%+v", found)
	}
}
