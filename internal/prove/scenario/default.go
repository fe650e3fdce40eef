// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opdock/opdock/internal/prove/values"
)

// ChangedAnnotation is set on an object that has nothing else to change.
const ChangedAnnotation = "opdock.dev/changed"

// The names of the steps that [Default] makes.
const (
	createStep = "create the samples"
	changeStep = "change the samples"
	backStep   = "change them back"
	deleteStep = "delete the samples"
)

// Default makes a scenario of samples: create them in the given order, change each, change it back, delete them. The way back
// matters: many operators remove something only then, such as the last replica or an optional component. The change of a
// sample adds one to its replicas, size or count. Without these it is one that the schema of its CRD suggests, else it adds
// one to any other integer, else it sets an annotation. What the API server may refuse has fallbacks.
func Default(samples, crds []*unstructured.Unstructured) *Scenario {
	apply := &Apply{}
	var there, back []Patch
	for _, sample := range samples {
		sample = sample.DeepCopy()
		if spec, found := sample.Object["spec"]; found && spec == nil {
			sample.Object["spec"] = map[string]any{} // kubebuilder writes samples with nothing but a comment there
		}
		apply.Objects = append(apply.Objects, sample)
		patch := change(sample, crds)
		there, back = append(there, patch), append(back, patch.takenBack(sample))
	}
	return &Scenario{Steps: []Step{
		{Name: createStep, Apply: apply},
		{Name: changeStep, Patch: there},
		{Name: backStep, Patch: back, Optional: true},
		{Name: deleteStep, Delete: &Delete{All: true}},
	}}
}

// mostFallbacks is how many changes of a spec are tried after the first.
const mostFallbacks = 5

func change(sample *unstructured.Unstructured, crds []*unstructured.Unstructured) Patch {
	patch := Patch{Ref: Ref{APIVersion: sample.GetAPIVersion(), Kind: sample.GetKind(), Namespace: sample.GetNamespace(), Name: sample.GetName()}}
	spec, _ := sample.Object["spec"].(map[string]any)
	var counted, others []map[string]any
	for _, one := range integers(spec) {
		more := nested(append([]string{"spec"}, one.path...), one.value+1)
		if telling(one.path) < anyInteger {
			counted = append(counted, more)
		} else {
			others = append(others, more)
		}
	}
	candidates := counted
	if len(counted) == 0 {
		candidates = suggestions(sample, crds)
	}
	candidates = append(candidates, others...)
	candidates = append(candidates[:min(len(candidates), 1+mostFallbacks)], annotated("true"))
	patch.Merge, patch.Fallbacks = candidates[0], candidates[1:]
	return patch
}

// annotated is a merge patch for the annotation of an object that has nothing else to change.
func annotated(value any) map[string]any {
	return nested([]string{"metadata", "annotations", ChangedAnnotation}, value)
}

// mostSuggestions is how many values are asked for. Few of them are more and can be set by a merge patch.
const (
	mostSuggestions = 20
	mostReplicas    = 5
)

// suggestions are merge patches with the first few values that the schema of a sample suggests.
func suggestions(sample *unstructured.Unstructured, crds []*unstructured.Unstructured) (patches []map[string]any) {
	schema := schemaFor(sample, crds)
	if schema == nil {
		return nil
	}
	for _, one := range values.Propose(schema, sample.Object, values.Options{Max: mostSuggestions, MaxReplicas: mostReplicas}) {
		if patch := asMerge(one, sample.Object); one.Class == values.Valid && !one.Pauses() && patch != nil && len(patches) <= mostFallbacks {
			patches = append(patches, patch)
		}
	}
	return patches
}

// asMerge is the merge patch that does the same as a change to an object; nil if there is none that only adds or replaces fields.
func asMerge(change values.Change, object map[string]any) map[string]any {
	want, err := change.Apply(object)
	if err != nil {
		return nil
	}
	patch := map[string]any{}
	for _, one := range append([]values.Change{change}, change.Also...) {
		merge(patch, nested(one.Path, one.Value))
	}
	got := runtime.DeepCopyJSON(object)
	if merge(got, patch); !reflect.DeepEqual(got, want) {
		return nil
	}
	return patch
}

// takenBack is the patch that takes this one back, whichever of its changes was made. If the API server refuses that, as it
// does for a field that can only grow, nothing is changed.
func (p *Patch) takenBack(sample *unstructured.Unstructured) Patch {
	back := Patch{Ref: p.Ref, Merge: map[string]any{}, Fallbacks: []map[string]any{annotated(nil)}}
	for _, one := range append([]map[string]any{p.Merge}, p.Fallbacks...) {
		merge(back.Merge, inverse(sample, one))
	}
	return back
}

// inverse is the merge patch that takes another one of an object back.
func inverse(object *unstructured.Unstructured, patch map[string]any) map[string]any {
	object = object.DeepCopy()
	if object.GetAnnotations() == nil {
		object.Object["metadata"].(map[string]any)["annotations"] = map[string]any{} // an operator may have added some
	}
	return inverseOf(object.Object, patch)
}

func inverseOf(fields, patch map[string]any) map[string]any {
	back := map[string]any{}
	for name, value := range patch {
		was, there := fields[name]
		inner, isMap := value.(map[string]any)
		wasInner, wasMap := was.(map[string]any)
		switch {
		case !there:
			back[name] = nil
		case isMap && wasMap:
			back[name] = inverseOf(wasInner, inner)
		default:
			back[name] = runtime.DeepCopyJSONValue(was)
		}
	}
	return back
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

// anyInteger is the rank of integers that count nothing.
const anyInteger = 4

// telling ranks integers by what a change of them makes an operator do.
func telling(path []string) int {
	name := path[len(path)-1]
	low := strings.ToLower(name)
	if at := slices.Index(counts, name); at >= 0 {
		return at
	}
	switch {
	case strings.HasSuffix(low, "replicas"), strings.HasSuffix(low, "size"), strings.HasSuffix(low, "count"):
		return len(counts)
	case strings.HasSuffix(low, "port"):
		return anyInteger + 1 // often tied to a second field
	default:
		return anyInteger
	}
}

// nested returns a value below fields.
func nested(path []string, value any) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return map[string]any{path[0]: runtime.DeepCopyJSONValue(value)}
}
