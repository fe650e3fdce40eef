// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/prove/world"
)

// read reads an object as clusters have it.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return &object
}

func TestSet(t *testing.T) {
	for name, test := range map[string]struct {
		path []string
		to   any
		want string
	}{
		"a field":                {[]string{"a", "b"}, "y", `{"a":{"b":"y"},"l":[{"x":1},2]}`},
		"a new one":              {[]string{"a", "c", "d"}, int64(1), `{"a":{"b":"x","c":{"d":1}},"l":[{"x":1},2]}`},
		"a field that goes":      {[]string{"a", "b"}, nil, `{"a":{},"l":[{"x":1},2]}`},
		"a field of an element":  {[]string{"l", "0", "x"}, int64(5), `{"a":{"b":"x"},"l":[{"x":5},2]}`},
		"an element":             {[]string{"l", "1"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},5]}`},
		"an element that is not": {[]string{"l", "2"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
		"no index":               {[]string{"l", "x"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
		"beyond a leaf":          {[]string{"a", "b", "c"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
	} {
		object := map[string]any{"a": map[string]any{"b": "x"}, "l": []any{map[string]any{"x": int64(1)}, int64(2)}}
		set(object, test.path, test.to)
		got, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestChildrenAreWhatTheOperatorWrote(t *testing.T) {
	c := sailing()
	var names []string
	for _, one := range c.children(1) {
		names = append(names, one.key.String())
	}
	// Neither the pod, which a controller of the cluster made, nor the custom resource.
	if want := []string{"Deployment default/victory"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	for key, object := range c.reference[1].state {
		c.before[key] = object
	}
	if left := c.children(1); len(left) > 0 {
		t.Errorf("%s was there before the scenario", left[0].key)
	}
}

// A custom resource whose kind has no namespaces has a status as well.
func TestStatusIsWiped(t *testing.T) {
	for _, namespace := range []string{"default", ""} {
		c, live := sailing(), frigate()
		live.SetNamespace(namespace)
		c.o.Subjects = []*unstructured.Unstructured{live}
		state := world.State{{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: namespace, Name: "victory"}: live}
		c.reference[1].state = state
		wipes := slices.DeleteFunc(driftPlans(c), func(p *Plan) bool { return p.Variant != "status" })
		if len(wipes) != 1 {
			t.Fatalf("namespace %q: %d plans, want 1", namespace, len(wipes))
		}
		if _, err := drift(&run{campaign: c, world: world.Of(state)}, wipes[0]); err != nil {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
}

// Plans that need all objects begin before a custom resource is deleted, however the scenario ends.
func TestStepWithMostObjects(t *testing.T) {
	for about, test := range map[string]struct {
		steps []Step
		want  int
	}{
		"everything is deleted":              {[]Step{{}, {}, {Deletes: true, Ends: true}}, 2},
		"the custom resource is, and others": {[]Step{{}, {Deletes: true}, {Ends: true}}, 1},
		"one custom resource is":             {[]Step{{}, {Deletes: true}, {}, {Deletes: true, Ends: true}}, 1},
		"nothing is":                         {[]Step{{}, {}, {}}, 2},
	} {
		c := sailing()
		if c.o.Steps = test.steps; c.fullest() != test.want {
			t.Errorf("%s: got %d, want %d", about, c.fullest(), test.want)
		}
	}
}

// A finalizer holds up the deletion of what goes with a custom resource, also if the scenario deletes other objects later.
func TestDeletionsThatAreHeldUp(t *testing.T) {
	held := func(c *campaign) (objects []string) {
		for _, p := range driftPlans(c) {
			if p.Variant == "finalizer" {
				objects = append(objects, p.Object)
			}
		}
		return objects
	}
	c := sailing()
	c.o.Steps[2] = Step{Name: "delete", Deletes: true}
	expectLines(t, held(c), "Deployment default/victory")
	c.reference[2].state = c.reference[1].state
	expectLines(t, held(c)) // nobody deletes it
}
