// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"bytes"
	"time"

	"go.yaml.in/yaml/v3"
)

// The file as it is written, with its fields in the order in which they are read best.
type (
	file struct {
		APIVersion string       `yaml:"apiVersion"`
		Kind       string       `yaml:"kind"`
		Steps      []fileStep   `yaml:"steps"`
		Ignore     []fileIgnore `yaml:"ignore,omitempty"`
		Settle     *fileSettle  `yaml:"settle,omitempty"`
	}
	fileStep struct {
		Name   string     `yaml:"name"`
		Apply  any        `yaml:"apply,omitempty"`
		Patch  any        `yaml:"patch,omitempty"`
		Scale  *fileScale `yaml:"scale,omitempty"`
		Delete any        `yaml:"delete,omitempty"`
		Wait   *fileWait  `yaml:"wait,omitempty"`
	}
	fileRef struct {
		APIVersion string `yaml:"apiVersion,omitempty"`
		Kind       string `yaml:"kind"`
		Name       string `yaml:"name"`
		Namespace  string `yaml:"namespace,omitempty"`
	}
	filePatch struct {
		fileRef `yaml:",inline"`
		Merge   map[string]any   `yaml:"merge,omitempty"`
		JSON    []map[string]any `yaml:"json,omitempty"`
	}
	fileScale struct {
		fileRef  `yaml:",inline"`
		Replicas int32 `yaml:"replicas"`
	}
	fileWait struct {
		fileRef `yaml:",inline"`
		For     string `yaml:"for"`
		Timeout string `yaml:"timeout,omitempty"`
	}
	fileIgnore struct {
		Verdict string `yaml:"verdict,omitempty"`
		Family  string `yaml:"family,omitempty"`
		Object  string `yaml:"object,omitempty"`
		Field   string `yaml:"field,omitempty"`
		Reason  string `yaml:"reason"`
	}
	fileSettle struct {
		Quiet    string `yaml:"quiet,omitempty"`
		Patience string `yaml:"patience,omitempty"`
		Bound    string `yaml:"bound,omitempty"`
	}
)

// YAML returns the scenario as a file that [Parse] reads. Fallbacks of patches are not part of a file.
func (s *Scenario) YAML() ([]byte, error) {
	f := file{APIVersion: APIVersion, Kind: Kind}
	for i := range s.Steps {
		f.Steps = append(f.Steps, s.Steps[i].file())
	}
	for _, one := range s.Ignore {
		f.Ignore = append(f.Ignore, fileIgnore(one))
	}
	if s.Settle != (Settle{}) {
		f.Settle = &fileSettle{written(s.Settle.Quiet), written(s.Settle.Patience), written(s.Settle.Bound)}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(f); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

func (s *Step) file() fileStep {
	step := fileStep{Name: s.Name}
	if s.Apply != nil {
		objects := make([]any, 0, len(s.Apply.Objects))
		for _, object := range s.Apply.Objects {
			objects = append(objects, object.Object)
		}
		step.Apply = single(objects)
	}
	if s.Patch != nil {
		patches := make([]any, 0, len(s.Patch))
		for _, patch := range s.Patch {
			patches = append(patches, patch.file())
		}
		step.Patch = single(patches)
	}
	if s.Scale != nil {
		step.Scale = &fileScale{refOf(s.Scale.Ref), s.Scale.Replicas}
	}
	switch {
	case s.Delete != nil && s.Delete.All:
		step.Delete = map[string]any{"all": true}
	case s.Delete != nil:
		step.Delete = refOf(s.Delete.Ref)
	}
	if s.Wait != nil {
		step.Wait = &fileWait{refOf(s.Wait.Ref), s.Wait.Condition + "=" + s.Wait.Status, written(s.Wait.Timeout)}
	}
	return step
}

func (p *Patch) file() filePatch {
	f := filePatch{fileRef: refOf(p.Ref), Merge: p.Merge}
	for _, one := range p.JSON {
		operation := map[string]any{"op": one.Op, "path": one.Path}
		switch one.Op {
		case "add", "replace", "test":
			operation["value"] = one.Value
		case "move", "copy":
			operation["from"] = one.From
		}
		f.JSON = append(f.JSON, operation)
	}
	return f
}

func refOf(r Ref) fileRef { return fileRef{r.APIVersion, r.Kind, r.Name, r.Namespace} }

// single is a list, or the one element that it has.
func single(list []any) any {
	if len(list) == 1 {
		return list[0]
	}
	return list
}

func written(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
