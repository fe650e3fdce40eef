// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scenario describes what a campaign of opdock prove does to an operator: steps that apply, patch, scale,
// delete and wait. A scenario comes from a YAML file, from the samples of a project, or from the schema of a CRD. This
// package does not run the steps.
package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/prove/report"
)

const (
	// APIVersion is the version of the files that this package reads and writes.
	APIVersion = "opdock.dev/v1alpha1"
	// Kind is the kind of these files.
	Kind = "Scenario"
)

// Scenario is a list of steps, and how to judge them.
type Scenario struct {
	// File is where it was read from; empty if it was not.
	File   string
	Steps  []Step
	Ignore []Ignore
	Settle Settle
}

// Step is one part of a scenario. Exactly one of its actions is set.
type Step struct {
	Name string
	// Line is the line in the file; 0 if there is none.
	Line int
	// Optional means that the scenario can do without it. Only [Default] sets it.
	Optional bool

	Apply  *Apply
	Patch  []Patch
	Scale  *Scale
	Delete *Delete
	Wait   *Wait
}

// Apply brings objects to the cluster, in this order.
type Apply struct {
	Objects []*unstructured.Unstructured
}

// Ref names an object. APIVersion and Namespace may be empty.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
}

func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Patch changes an object, by a JSON merge patch or by a JSON patch.
type Patch struct {
	Ref
	Merge map[string]any
	JSON  []Operation
	// Fallbacks are merge patches to try in turn if the API server refuses Merge. Only [Default] sets them.
	Fallbacks []map[string]any
}

// Operation is one operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string
	Path  string
	From  string
	Value any
}

// MarshalJSON writes what the operation needs: null is a value of add, but not of remove.
func (o Operation) MarshalJSON() ([]byte, error) {
	fields := map[string]any{"op": o.Op, "path": o.Path}
	switch o.Op {
	case "add", "replace", "test":
		fields["value"] = o.Value
	case "move", "copy":
		fields["from"] = o.From
	}
	return json.Marshal(fields)
}

// Data returns the patch as the API server takes it.
func (p *Patch) Data() (types.PatchType, []byte, error) {
	if p.JSON != nil {
		data, err := json.Marshal(p.JSON)
		return types.JSONPatchType, data, err
	}
	data, err := json.Marshal(p.Merge)
	return types.MergePatchType, data, err
}

// Scale sets the replicas of an object.
type Scale struct {
	Ref
	Replicas int32
}

// Delete deletes one object, or everything that steps before it applied.
type Delete struct {
	Ref
	All bool
}

// Wait waits until a condition of an object has a status.
type Wait struct {
	Ref
	Condition, Status string
	// Timeout is how long; 0 if the file does not say it.
	Timeout time.Duration
}

// Settle says when a step is over. A value of 0 is not set in the file.
type Settle struct {
	// Quiet is how long nothing may happen, and Bound how long a step may take. Patience is how long nothing may happen at
	// the end of undisturbed steps, and before something is called wrong.
	Quiet, Patience, Bound time.Duration
}

// Ignore says which findings do not matter, and why. Empty fields match everything.
type Ignore struct {
	Verdict, Family string
	// Object is "Kind", "Kind name" or "Kind namespace/name"; Field is a field or one of its parents. In both, * stands
	// for any text.
	Object, Field string
	Reason        string
}

// What is wrong with an entry of ignore, in a file and in code.
const (
	needsReason = "an entry of ignore needs a reason: the report shows it"
	ignoresAll  = "this entry ignores everything: add verdict, family, object or field"
)

// Check returns what is wrong with an entry that does not come from a file, where the same rules apply.
func (i *Ignore) Check() error {
	var mistakes []string
	if verdicts := report.Verdicts(); i.Verdict != "" && !slices.Contains(verdicts, i.Verdict) {
		mistakes = append(mistakes, unknown("verdict", i.Verdict, i.Verdict, verdicts))
	}
	if families := report.Families(); i.Family != "" && !slices.Contains(families, i.Family) {
		mistakes = append(mistakes, unknown("family", i.Family, i.Family, families))
	}
	if strings.TrimSpace(i.Reason) == "" {
		mistakes = append(mistakes, needsReason)
	}
	if i.Verdict == "" && i.Family == "" && i.Object == "" && i.Field == "" {
		mistakes = append(mistakes, ignoresAll)
	}
	if len(mistakes) == 0 {
		return nil
	}
	return errors.New(strings.Join(mistakes, "; "))
}

// Ignores returns the entry that matches a finding, or nil.
func (s *Scenario) Ignores(verdict, family, object string, fields []string) *Ignore {
	for i := range s.Ignore {
		if s.Ignore[i].Matches(verdict, family, object, fields) {
			return &s.Ignore[i]
		}
	}
	return nil
}

// Matches reports whether a finding is to be ignored. A field matches only if it covers all fields of the finding.
func (i *Ignore) Matches(verdict, family, object string, fields []string) bool {
	if i.Verdict != "" && i.Verdict != verdict || i.Family != "" && i.Family != family {
		return false
	}
	if i.Object != "" && !matchesObject(i.Object, object) {
		return false
	}
	if i.Field == "" {
		return true
	}
	for _, field := range fields {
		if !matchesField(i.Field, field) {
			return false
		}
	}
	return len(fields) > 0
}

// matchesObject compares with "Kind namespace/name", and with what is left of it without namespace or name.
func matchesObject(pattern, object string) bool {
	kind, full, _ := strings.Cut(object, " ")
	name := full[strings.LastIndexByte(full, '/')+1:]
	if patternKind, rest, ok := strings.Cut(pattern, "/"); ok && !strings.Contains(patternKind, " ") {
		pattern = patternKind + " " + rest // Kind/name, as kubectl writes it
	}
	for _, form := range []string{kind, kind + " " + full, kind + " " + name} {
		if glob(pattern, form) {
			return true
		}
	}
	return false
}

func matchesField(pattern, field string) bool {
	pattern, field = strings.TrimPrefix(pattern, "."), strings.TrimPrefix(field, ".")
	if glob(pattern, field) {
		return true
	}
	for at, r := range field {
		if (r == '.' || r == '[') && at > 0 && glob(pattern, field[:at]) {
			return true
		}
	}
	return false
}

// glob reports whether a text is a pattern in which * stands for any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) || !strings.HasSuffix(text[len(first):], last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return true
}

// MistakeError is a mistake in a file.
type MistakeError struct {
	File         string
	Line, Column int
	Text         string
}

func (p *MistakeError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Text)
}
