// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standin imitates the controllers of kinds whose real operators are missing: a few lines of
// YAML define what happens to an object, so you can develop an operator that depends on others.
// docs/stand-ins.md describes them.
package standin

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"text/template"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const (
	// Label marks ConfigMaps that hold stand-ins, each value one.
	Label = "opdock.dev/stand-in"
	// Annotation on an object overrules its stand-in: fail, succeed or ignore.
	Annotation = "opdock.dev/stand-in"
)

// Definition defines what happens to the objects of a kind.
type Definition struct {
	// Kind is the kind and its group, as in Certificate.cert-manager.io.
	Kind string `json:"kind"`
	// After is how long it takes after an object was created or its spec changed.
	After metav1.Duration `json:"after,omitempty"`
	// Status is merged into the status of the object. Strings are templates.
	Status map[string]any `json:"status,omitempty"`
	// Creates are objects that appear, owned by the object. Strings are templates.
	Creates []map[string]any `json:"creates,omitempty"`
	// Failure is what happens instead to some of the objects.
	Failure *Failure `json:"failure,omitempty"`
}

// Failure defines how often a stand-in fails, and the resulting status.
type Failure struct {
	// Percent of the objects fail, always the same ones.
	Percent int            `json:"percent,omitempty"`
	Status  map[string]any `json:"status,omitempty"`
}

// Parse reads a definition. The error is a sentence for its author.
func Parse(text string) (Definition, error) {
	var d Definition
	if err := yaml.UnmarshalStrict([]byte(text), &d); err != nil {
		return d, err
	}
	switch {
	case d.Kind == "":
		return d, errors.New("kind is missing; use KIND.GROUP, such as Certificate.cert-manager.io")
	case d.After.Duration < 0:
		return d, fmt.Errorf("after must not be negative, but is %v", d.After.Duration)
	case len(d.Status) == 0 && len(d.Creates) == 0:
		return d, errors.New("neither status nor creates is set")
	case d.Failure != nil && (d.Failure.Percent < 0 || d.Failure.Percent > 100):
		return d, fmt.Errorf("failure.percent must be between 0 and 100, not %d", d.Failure.Percent)
	}
	for i, made := range d.Creates {
		if made["apiVersion"] == nil || made["kind"] == nil {
			return d, fmt.Errorf("creates[%d] has no apiVersion or no kind", i)
		}
	}
	// Templates that cannot be parsed are found before there is an object.
	for _, value := range append([]map[string]any{d.Status, failureStatus(d)}, d.Creates...) {
		if err := checkTemplates(value); err != nil {
			return d, err
		}
	}
	return d, nil
}

func failureStatus(d Definition) map[string]any {
	if d.Failure == nil {
		return nil
	}
	return d.Failure.Status
}

// GroupKind returns the kind that objects must have.
func (d Definition) GroupKind() schema.GroupKind { return schema.ParseGroupKind(d.Kind) }

// Outcome is what becomes of one object.
type Outcome struct {
	Status  map[string]any
	Creates []*unstructured.Unstructured
}

// Of returns what becomes of an object. ok is false if nothing does.
func (d Definition) Of(object *unstructured.Unstructured, now time.Time) (outcome Outcome, ok bool, err error) {
	fails := false
	switch chosen := object.GetAnnotations()[Annotation]; chosen {
	case "ignore":
		return outcome, false, nil
	case "fail":
		fails = true
	case "succeed":
	case "":
		fails = d.Failure != nil && chance(object) < d.Failure.Percent
	default:
		return outcome, false, fmt.Errorf("annotation %s is %q; it can be fail, succeed or ignore", Annotation, chosen)
	}
	status := d.Status
	if fails {
		status = failureStatus(d)
	}
	if outcome.Status, err = fillMap(status, object); err != nil {
		return outcome, false, fmt.Errorf("status: %w", err)
	}
	keepTransitions(outcome.Status, object, now)
	if fails {
		return outcome, true, nil
	}
	for i, made := range d.Creates {
		filled, err := fillMap(made, object)
		if err != nil {
			return outcome, false, fmt.Errorf("creates[%d]: %w", i, err)
		}
		outcome.Creates = append(outcome.Creates, owned(&unstructured.Unstructured{Object: filled}, object))
	}
	return outcome, true, nil
}

// chance is a number from 0 to 99 that is always the same for an object.
func chance(object *unstructured.Unstructured) int {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(object.GetNamespace() + "/" + object.GetName()))
	return int(sum.Sum32() % 100)
}

// owned puts an object into the namespace of its owner, and makes it go with it.
func owned(made, owner *unstructured.Unstructured) *unstructured.Unstructured {
	if made.GetName() == "" {
		made.SetName(owner.GetName())
	}
	if made.GetNamespace() == "" {
		made.SetNamespace(owner.GetNamespace())
	}
	if owner.GetNamespace() == "" || owner.GetNamespace() == made.GetNamespace() {
		made.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	return made
}

// keepTransitions gives conditions a time at which they got their status, if the definition does not.
func keepTransitions(status map[string]any, object *unstructured.Unstructured, now time.Time) {
	conditions, _ := status["conditions"].([]any)
	before, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, isMap := entry.(map[string]any)
		if !isMap || condition["lastTransitionTime"] != nil {
			continue
		}
		condition["lastTransitionTime"] = now.UTC().Format(time.RFC3339)
		for _, old := range before {
			if previous, isMap := old.(map[string]any); isMap && previous["type"] == condition["type"] && previous["status"] == condition["status"] {
				condition["lastTransitionTime"] = previous["lastTransitionTime"]
			}
		}
	}
}

var functions = template.FuncMap{
	"base64": func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) },
	"default": func(byDefault, value any) any {
		if value == nil || value == "" {
			return byDefault
		}
		return value
	},
}

func parseTemplate(text string) (*template.Template, error) {
	return template.New("").Funcs(functions).Option("missingkey=error").Parse(text)
}

func checkTemplates(value any) error {
	_, err := walk(value, func(text string) (any, error) {
		_, err := parseTemplate(text)
		return text, err
	})
	return err
}

func fillMap(value map[string]any, object *unstructured.Unstructured) (map[string]any, error) {
	if value == nil {
		return nil, nil
	}
	filled, err := walk(value, func(text string) (any, error) {
		parsed, err := parseTemplate(text)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := parsed.Execute(&out, object.Object); err != nil {
			return nil, err
		}
		return scalar(text, out.String()), nil
	})
	if err != nil {
		return nil, err
	}
	return filled.(map[string]any), nil
}

// scalar lets a template that is nothing but one value keep its type: a generation is a number.
func scalar(text, filled string) any {
	if strings.HasPrefix(text, "{{") && strings.HasSuffix(text, "}}") && strings.Count(text, "{{") == 1 {
		var value any
		if err := yaml.Unmarshal([]byte(filled), &value); err == nil {
			switch typed := value.(type) {
			case float64:
				if typed == float64(int64(typed)) {
					return int64(typed)
				}
				return typed
			case bool:
				return typed
			}
		}
	}
	return filled
}

// walk copies a value and replaces each string that is a template.
func walk(value any, replace func(string) (any, error)) (any, error) {
	switch typed := value.(type) {
	case string:
		if !strings.Contains(typed, "{{") {
			return typed, nil
		}
		return replace(typed)
	case map[string]any:
		copied := make(map[string]any, len(typed))
		for key, one := range typed {
			filled, err := walk(one, replace)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			copied[key] = filled
		}
		return copied, nil
	case []any:
		copied := make([]any, 0, len(typed))
		for _, one := range typed {
			filled, err := walk(one, replace)
			if err != nil {
				return nil, err
			}
			copied = append(copied, filled)
		}
		return copied, nil
	case float64: // what YAML has instead of whole numbers
		if typed == float64(int64(typed)) {
			return int64(typed), nil
		}
		return typed, nil
	default:
		return value, nil
	}
}
