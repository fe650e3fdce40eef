// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ChangedAnnotation is set on an object that has nothing else to change.
const ChangedAnnotation = "opdock.dev/changed"

// The names of the steps that [Default] makes.
const (
	createStep = "create the samples"
	changeStep = "change the samples"
	deleteStep = "delete the samples"
)

// Default makes a scenario of samples: create them in the given order, change each, delete them. The change of a sample
// adds one to its replicas, size or count, else to any other integer, else it sets an annotation. What the API server
// may refuse has fallbacks.
func Default(samples []*unstructured.Unstructured) *Scenario {
	apply := &Apply{}
	var patches []Patch
	for _, sample := range samples {
		sample = sample.DeepCopy()
		if spec, found := sample.Object["spec"]; found && spec == nil {
			sample.Object["spec"] = map[string]any{} // kubebuilder writes samples with nothing but a comment there
		}
		apply.Objects = append(apply.Objects, sample)
		patches = append(patches, change(sample))
	}
	return &Scenario{Steps: []Step{
		{Name: createStep, Apply: apply},
		{Name: changeStep, Patch: patches},
		{Name: deleteStep, Delete: &Delete{All: true}},
	}}
}

// mostFallbacks is how many integers are tried after the first.
const mostFallbacks = 5

func change(sample *unstructured.Unstructured) Patch {
	patch := Patch{Ref: Ref{APIVersion: sample.GetAPIVersion(), Kind: sample.GetKind(), Namespace: sample.GetNamespace(), Name: sample.GetName()}}
	var candidates []map[string]any
	spec, _ := sample.Object["spec"].(map[string]any)
	for _, one := range integers(spec) {
		candidates = append(candidates, nested(append([]string{"spec"}, one.path...), one.value+1))
		if len(candidates) > mostFallbacks {
			break
		}
	}
	candidates = append(candidates, nested([]string{"metadata", "annotations", ChangedAnnotation}, "true"))
	patch.Merge, patch.Fallbacks = candidates[0], candidates[1:]
	return patch
}

// integer is an integer below a spec.
type integer struct {
	path  []string
	value int64
}

// integers returns all integers that a merge patch can change, which are those outside of lists, the most telling first.
func integers(spec map[string]any) []integer {
	var all []integer
	var collect func(fields map[string]any, path []string)
	collect = func(fields map[string]any, path []string) {
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			here := append(slices.Clone(path), name)
			switch value := fields[name].(type) {
			case map[string]any:
				collect(value, here)
			case int64:
				all = append(all, integer{here, value})
			case float64:
				if value == math.Trunc(value) && math.Abs(value) < 1<<53 {
					all = append(all, integer{here, int64(value)})
				}
			}
		}
	}
	collect(spec, nil)
	all = slices.DeleteFunc(all, func(i integer) bool { return i.value == math.MaxInt64 })
	slices.SortStableFunc(all, func(a, b integer) int {
		return cmp.Or(cmp.Compare(telling(a.path), telling(b.path)), cmp.Compare(len(a.path), len(b.path)))
	})
	return all
}

// counts are the integers whose change makes an operator do most.
var counts = []string{"replicas", "size", "count"}

// telling ranks integers by what a change of them makes an operator do.
func telling(path []string) int {
	name := path[len(path)-1]
	low := strings.ToLower(name)
	if at := slices.Index(counts, name); at >= 0 {
		return at
	}
	switch {
	case strings.HasSuffix(low, "replicas"), strings.HasSuffix(low, "size"), strings.HasSuffix(low, "count"):
		return 3
	case strings.HasSuffix(low, "port"):
		return 5 // often tied to a second field
	default:
		return 4
	}
}

// nested returns a value below fields.
func nested(path []string, value any) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return map[string]any{path[0]: runtime.DeepCopyJSONValue(value)}
}
