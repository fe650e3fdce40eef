// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package prove

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/engine"
	"github.com/opdock/opdock/internal/prove/scenario"
)

// applied is a step that applies objects of a kind, with a name and a number of guns each.
func applied(kind string, guns map[string]int64) scenario.Step {
	step := scenario.Step{Name: "apply", Apply: &scenario.Apply{}}
	for name, number := range guns {
		object := sampleOf("sea.example.com/v1", kind)
		object.SetName(name)
		object.Object["spec"] = map[string]any{"guns": number}
		step.Apply.Objects = append(step.Apply.Objects, object)
	}
	return step
}

func played(steps ...scenario.Step) engine.Options {
	var e engine.Options
	stepsOf(&e, &scenario.Scenario{Steps: steps}, []*unstructured.Unstructured{definitionOf("sea.example.com", "Frigate")}, "default")
	return e
}

// Disturbances create each object of the scenario, which is possible only once.
func TestObjectsThatAreAppliedTwice(t *testing.T) {
	e := played(applied("Frigate", map[string]int64{"victory": 100}), applied("Port", map[string]int64{"victory": 1}),
		applied("Port", map[string]int64{"victory": 2}), applied("Frigate", map[string]int64{"victory": 102}), applied("Frigate", map[string]int64{"surprise": 28}))
	names := func(objects []*unstructured.Unstructured) (names []string) {
		for _, one := range objects {
			names = append(names, one.GetName())
		}
		return names
	}
	if got := names(e.Subjects); !slices.Equal(got, []string{"victory", "surprise"}) {
		t.Errorf("the custom resources are %q", got)
	}
	if got := names(e.Others); !slices.Equal(got, []string{"victory"}) {
		t.Errorf("the other objects are %q", got)
	}
	if guns, _, _ := unstructured.NestedInt64(e.Subjects[0].Object, "spec", "guns"); guns != 100 {
		t.Errorf("it has %d guns, and not those that it is created with", guns)
	}
}

// Without a step after it, the state after the last one is never disturbed.
func TestScenariosThatLeaveObjectsThere(t *testing.T) {
	create := applied("Frigate", map[string]int64{"victory": 100})
	for name, test := range map[string]struct {
		steps []scenario.Step
		want  int
	}{
		"one step":          {[]scenario.Step{create}, 2},
		"deletes all":       {[]scenario.Step{create, {Delete: &scenario.Delete{All: true}}}, 2},
		"deletes an object": {[]scenario.Step{create, {Delete: &scenario.Delete{Ref: scenario.Ref{Kind: "Frigate", Name: "victory"}}}}, 2},
		"waits":             {[]scenario.Step{create, {Wait: &scenario.Wait{}}}, 2},
		"changes":           {[]scenario.Step{create, {Scale: &scenario.Scale{Ref: scenario.Ref{Kind: "Frigate", Name: "victory"}}}}, 3},
	} {
		e := played(test.steps...)
		if len(e.Steps) != test.want {
			t.Errorf("%s: %d steps, want %d", name, len(e.Steps), test.want)
			continue
		}
		if last := e.Steps[len(e.Steps)-1]; test.want > len(test.steps) && (last.Ends || last.Name == "" || last.Do(t.Context(), nil) != nil) {
			t.Errorf("%s: the last step is %+v", name, last)
		}
	}
}

// A step that changes a pod cannot be taken back: who made the pod changes it as well.
func TestStepsThatChangeObjectsOfOthers(t *testing.T) {
	ours, theirs := scenario.Ref{Kind: "Frigate", Name: "victory"}, scenario.Ref{Kind: "Pod", Name: "victory"}
	for name, test := range map[string]struct {
		step scenario.Step
		want bool
	}{
		"patches its own":  {scenario.Step{Patch: []scenario.Patch{{Ref: ours}}}, false},
		"patches another":  {scenario.Step{Patch: []scenario.Patch{{Ref: ours}, {Ref: theirs}}}, true},
		"scales its own":   {scenario.Step{Scale: &scenario.Scale{Ref: ours}}, false},
		"scales another":   {scenario.Step{Scale: &scenario.Scale{Ref: theirs}}, true},
		"deletes its own":  {scenario.Step{Delete: &scenario.Delete{Ref: ours}}, false},
		"deletes another":  {scenario.Step{Delete: &scenario.Delete{Ref: theirs}}, true},
		"deletes all":      {scenario.Step{Delete: &scenario.Delete{All: true}}, false},
		"waits for others": {scenario.Step{Wait: &scenario.Wait{Ref: theirs}}, false},
	} {
		e := played(applied("Frigate", map[string]int64{"victory": 100}), test.step)
		if got := e.Steps[1].Elsewhere; got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// What needs most custom resources is tried before the step that has them.
func TestStepsCountCustomResources(t *testing.T) {
	victory, surprise := applied("Frigate", map[string]int64{"victory": 100}), applied("Frigate", map[string]int64{"surprise": 28})
	port := applied("Port", map[string]int64{"victory": 1})
	remove := scenario.Step{Name: "delete", Delete: &scenario.Delete{Ref: scenario.Ref{Kind: "Frigate", Name: "victory"}}}
	all := scenario.Step{Name: "delete", Delete: &scenario.Delete{All: true}}
	for name, test := range map[string]struct {
		steps []scenario.Step
		want  []int
	}{
		"two of them":            {[]scenario.Step{victory, surprise, remove, all}, []int{0, 1, 2, 1}},
		"one after the other":    {[]scenario.Step{victory, remove, surprise, all}, []int{0, 1, 0, 1}},
		"applied twice":          {[]scenario.Step{victory, victory, all}, []int{0, 1, 1}},
		"another object":         {[]scenario.Step{port, victory, all}, []int{0, 0, 1}},
		"it is there at the end": {[]scenario.Step{victory}, []int{0, 1}},
	} {
		var got []int
		for _, step := range played(test.steps...).Steps {
			got = append(got, step.Subjects)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// The end of a scenario need not be one step, and need not say that everything is deleted.
func TestStepsThatDelete(t *testing.T) {
	const nothing, custom, end, customAndEnd = "-", "deletes", "ends", "deletes, ends"
	frigate, port := applied("Frigate", map[string]int64{"victory": 100}), applied("Port", map[string]int64{"victory": 1})
	remove := func(kind, name string) scenario.Step {
		return scenario.Step{Name: "delete", Delete: &scenario.Delete{Ref: scenario.Ref{Kind: kind, Name: name}}}
	}
	all := scenario.Step{Name: "delete", Delete: &scenario.Delete{All: true}}
	harbour := scenario.Step{Name: "apply", Apply: &scenario.Apply{Objects: []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"},
	}}}}}
	for name, test := range map[string]struct {
		steps []scenario.Step
		want  []string
	}{
		"all at once":              {[]scenario.Step{frigate, port, all}, []string{nothing, nothing, customAndEnd}},
		"the only object":          {[]scenario.Step{frigate, remove("Frigate", "victory")}, []string{nothing, customAndEnd}},
		"one after the other":      {[]scenario.Step{frigate, port, remove("Frigate", "victory"), remove("Port", "victory")}, []string{nothing, nothing, custom, end}},
		"the other way round":      {[]scenario.Step{frigate, port, remove("Port", "victory"), all}, []string{nothing, nothing, nothing, customAndEnd}},
		"created again":            {[]scenario.Step{frigate, remove("Frigate", "victory"), frigate, all}, []string{nothing, customAndEnd, nothing, customAndEnd}},
		"applied twice":            {[]scenario.Step{frigate, frigate, remove("Frigate", "victory")}, []string{nothing, nothing, customAndEnd}},
		"an object of others":      {[]scenario.Step{remove("Pod", "victory"), frigate, remove("Pod", "victory"), all}, []string{nothing, nothing, nothing, customAndEnd}},
		"the namespace with it":    {[]scenario.Step{harbour, frigate, remove("Namespace", "default")}, []string{nothing, nothing, customAndEnd}},
		"an object of that name":   {[]scenario.Step{harbour, frigate, remove("ConfigMap", "default"), all}, []string{nothing, nothing, nothing, customAndEnd}},
		"nothing, and it is there": {[]scenario.Step{frigate}, []string{nothing, nothing}},
	} {
		var got []string
		for _, step := range played(test.steps...).Steps {
			says := nothing
			switch {
			case step.Deletes && step.Ends:
				says = customAndEnd
			case step.Deletes:
				says = custom
			case step.Ends:
				says = end
			}
			got = append(got, says)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// Objects that name no namespace can move to one that the operator watches, with all steps that refer to them.
func TestScenariosThatMove(t *testing.T) {
	there := applied("Frigate", map[string]int64{"surprise": 28})
	there.Apply.Objects[0].SetNamespace("sea")
	patch := scenario.Step{Patch: []scenario.Patch{{Ref: scenario.Ref{Kind: "Frigate", Name: "victory"}}}}
	e := played(applied("Frigate", map[string]int64{"victory": 100}), applied("Port", map[string]int64{"boston": 1}), there, patch)
	e.Move("harbour")
	for _, one := range slices.Concat(e.Subjects, e.Others) {
		if want := map[string]string{"victory": "harbour", "boston": "harbour", "surprise": "sea"}[one.GetName()]; one.GetNamespace() != want {
			t.Errorf("%s is in %s, want %s", one.GetName(), one.GetNamespace(), want)
		}
	}
	for about, step := range map[string]scenario.Step{
		"a change": {Patch: []scenario.Patch{{Ref: scenario.Ref{Kind: "Frigate", Namespace: "default", Name: "victory"}}}},
		"a wait":   {Wait: &scenario.Wait{Ref: scenario.Ref{Kind: "Frigate", Namespace: "default", Name: "victory"}}},
	} {
		if e := played(applied("Frigate", map[string]int64{"victory": 100}), step); e.Move != nil {
			t.Errorf("the scenario moves, although %s names its namespace", about)
		}
	}
}
