// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// TestTraces has what is left of a change that was taken back.
func TestTraces(t *testing.T) {
	const deployment, config = "Deployment default/victory", "ConfigMap default/victory-5d4f8c"
	with := func(path, value string) compare.Shape {
		fields := compare.Fields{"spec.env[GIT_REVISION].value": "main", "spec.replicas": "1"}
		fields[path] = value
		return compare.Shape{Objects: map[string]compare.Fields{deployment: fields, config: {}}}
	}
	expected := with("spec.replicas", "1")
	older, other := with("spec.replicas", "1"), with("spec.replicas", "1")
	older.Objects["ConfigMap default/victory-77bd1a"] = compare.Fields{}
	other.Objects["ConfigMap default/other-77bd1a"] = compare.Fields{}
	for about, test := range map[string]struct {
		takesBack bool
		got       compare.Shape
		left      bool
	}{
		"a time":                             {true, with("metadata.annotations.updatedAt", "(time)"), false},
		"a time, and there was no change":    {false, with("spec.template.metadata.annotations.updatedAt", "(time)"), true},
		"a note of a time":                   {false, with("metadata.annotations.updatedAt", "(time)"), false},
		"an older object":                    {true, older, false},
		"one, and there was no change":       {false, older, true},
		"an object that none has replaced":   {true, other, true},
		"a value that is not taken back":     {true, with("spec.replicas", "2"), true},
		"one in a field named like the past": {true, with("spec.env[GIT_REVISION].value", "next"), true},
		"a revision of something else":       {true, with("spec.env[GIT_REVISION].value", "other"), false},
	} {
		c := sailing()
		c.reference[1].shape = expected
		r := &run{campaign: c, family: "unobserved", takesBack: test.takesBack, setting: setting{after: []string{"next"}}}
		if found := r.deviationsOf(1, test.got); (len(found) > 0) != test.left {
			t.Errorf("%s: %v", about, found)
		}
	}
}

// TestPastJobs has Jobs that ran for a change that was taken back.
func TestPastJobs(t *testing.T) {
	job := func(name, completed string) *unstructured.Unstructured {
		return read(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: "+name+", namespace: default, uid: "+name+"}, status: {"+completed+"}}")
	}
	const over = `completionTime: "2026-11-18T12:00:00Z"`
	pod := read(t, "{apiVersion: v1, kind: Pod, metadata: {name: migrate-2-x, generateName: migrate-2-, namespace: default, ownerReferences: [{kind: Job, uid: migrate-2}]}}")
	for about, test := range map[string]struct {
		takesBack bool
		ends      bool
		completed string
		left      bool
	}{
		"a Job that is over":                  {true, false, over, false},
		"one that is not":                     {true, false, "active: 1", true},
		"one that is over without any change": {false, false, over, true},
		"one that is over after the deletion": {true, true, over, true},
	} {
		c, state := sailing(), world.State{}
		for name, completed := range map[string]string{"migrate-1": over, "migrate-2": test.completed} {
			state[world.Key{Group: "batch", Resource: "jobs", Kind: "Job", Namespace: "default", Name: name}] = job(name, completed)
		}
		c.o.Steps[1].Ends = test.ends
		c.reference[1].shape = c.shapeOf(state)
		delete(c.reference[1].shape.Objects, "Job default/migrate-2")
		state[world.Key{Resource: "pods", Kind: "Pod", Namespace: "default", Name: "migrate-2-x"}] = pod
		r := &run{campaign: c, family: "input", takesBack: test.takesBack, world: world.Of(state)}
		if found := r.deviations(1); (len(found) > 0) != test.left {
			t.Errorf("%s: %v", about, found)
		}
	}
}

// TestSettingOfAStep has a step that is taken back: a field that keeps what it has set is no trace.
func TestSettingOfAStep(t *testing.T) {
	for variant, want := range map[string]bool{undone: true, compressed: false, recreateUnseen: false} {
		if p := (&Plan{Family: "unobserved", Variant: variant}); p.takesBack() != want {
			t.Errorf("%s takes something back: %v", variant, !want)
		}
	}
	c := sailing()
	for step, captain := range []string{"hull", "stewart"} {
		live := frigate()
		live.Object["spec"] = map[string]any{"captain": captain, "port": "boston", "guns": int64(step)}
		c.reference[step].state = world.State{{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}: live}
	}
	s := c.settingOf(&Plan{Family: "unobserved", Variant: undone, Step: 1})
	if !slices.Equal(s.before, []string{"hull"}) || !slices.Equal(s.after, []string{"stewart"}) {
		t.Errorf("got %+v", s)
	}
}
