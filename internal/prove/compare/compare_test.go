// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"slices"
	"testing"
)

func shape(objects map[string]Fields) Shape { return Shape{Objects: objects} }

// lines are differences as people read them.
func lines(found []Difference) (texts []string) {
	for _, d := range found {
		texts = append(texts, d.String())
	}
	return texts
}

func expectLines(t *testing.T, found []Difference, want ...string) {
	t.Helper()
	if got := lines(found); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDifferences(t *testing.T) {
	want := shape(map[string]Fields{
		"Frigate a": {"spec.guns": "1", "metadata.labels.x": "y", "status.ready": "true", "spec.sails": "2"},
		"Frigate b": {},
		"Frigate c": {},
	})
	want.Counts = map[string]int{"Pod a-*": 2, "Pod b-*": 1}
	got := shape(map[string]Fields{
		"Frigate a": {"spec.guns": "2", "status.ready": "false", "spec.flag": "red", "metadata.labels.x": "z"},
		"Frigate c": {},
		"Frigate d": {},
		"Frigate e": {"": "gone, although it was there before"},
	})
	got.Counts = map[string]int{"Pod a-*": 3, "Pod c-*": 1}
	// Objects come first, then what is asked for, what controllers make of it, metadata, and what is only reported.
	expectLines(t, NewMask().Differences(want, got),
		"Frigate b: absent instead of present",
		"Frigate d: present instead of absent",
		"Frigate e: gone, although it was there before instead of absent",
		"Frigate a: spec.flag is red instead of absent",
		"Frigate a: spec.guns is 2 instead of 1",
		"Frigate a: spec.sails is absent instead of 2",
		"Pod a-*: 3 of them instead of 2 of them",
		"Pod b-*: 0 of them instead of 1 of them",
		"Pod c-*: 1 of them instead of none of them",
		"Frigate a: metadata.labels.x is z instead of y",
		"Frigate a: status.ready is false instead of true",
	)
	expectLines(t, NewMask().Differences(want, want))
}

func TestIsStatus(t *testing.T) {
	for path, want := range map[string]bool{"status": true, "status.ready": true, "statusCode": false, "spec.status": false, "": false} {
		if got := (Difference{Path: path}).IsStatus(); got != want {
			t.Errorf("%q: got %v, want %v", path, got, want)
		}
	}
}

// TestMaskHidesWhatItLearned lets a mask learn from two undisturbed runs, and compares a third and a disturbed one.
func TestMaskHidesWhatItLearned(t *testing.T) {
	for name, test := range map[string]struct {
		first, second, third map[string]Fields
		want                 []string // that remains of first and third
	}{
		"a field": {
			map[string]Fields{"A": {"data.token": "1", "data.user": "me"}}, map[string]Fields{"A": {"data.token": "2", "data.user": "me"}},
			map[string]Fields{"A": {"data.token": "3", "data.user": "you"}}, []string{"A: data.user is you instead of me"},
		},
		"a field of another object": {
			map[string]Fields{"A": {"x": "1"}, "B": {"x": "1"}}, map[string]Fields{"A": {"x": "2"}, "B": {"x": "1"}},
			map[string]Fields{"A": {"x": "3"}, "B": {"x": "3"}}, []string{"B: x is 3 instead of 1"},
		},
		"the same field of any element of a list": {
			map[string]Fields{"A": {"list[0].id": "1", "list[1].id": "7", "list[1].size": "s"}}, map[string]Fields{"A": {"list[0].id": "2", "list[1].id": "7", "list[1].size": "s"}},
			map[string]Fields{"A": {"list[0].id": "1", "list[1].id": "8", "list[1].size": "t"}}, []string{"A: list[1].size is t instead of s"},
		},
		"the same field of an element with a key": {
			map[string]Fields{"A": {"env[TOKEN].value": "1", "env[USER].value": "me"}}, map[string]Fields{"A": {"env[TOKEN].value": "2", "env[USER].value": "me"}},
			map[string]Fields{"A": {"env[TOKEN].value": "3", "env[USER].value": "you"}}, []string{"A: env[USER].value is you instead of me"},
		},
		"an element with another key each time": {
			map[string]Fields{"A": {"volumes[a-1].name": "a-1", "volumes[data].size": "s"}}, map[string]Fields{"A": {"volumes[a-2].name": "a-2", "volumes[data].size": "s"}},
			map[string]Fields{"A": {"volumes[a-3].name": "a-3", "volumes[data].size": "t"}}, []string{"A: volumes[data].size is t instead of s"},
		},
		"an element that stays among others": {
			map[string]Fields{"A": {"volumes[a-1].size": "s", "volumes[data].size": "s"}}, map[string]Fields{"A": {"volumes[a-2].size": "s", "volumes[data].size": "s"}},
			map[string]Fields{"A": {"volumes[a-3].size": "s", "volumes[data].size": "t"}}, []string{"A: volumes[data].size is t instead of s"},
		},
		"an element within one with another key each time": {
			map[string]Fields{"A": {"containers[a-1].env[USER].value": "me"}}, map[string]Fields{"A": {"containers[a-2].env[USER].value": "me"}},
			map[string]Fields{"A": {"containers[a-3].env[USER].value": "me"}}, nil,
		},
		"the same key in another element": {
			map[string]Fields{"A": {"containers[main].env[TOKEN].value": "1", "containers[side].env[TOKEN].value": "7"}},
			map[string]Fields{"A": {"containers[main].env[TOKEN].value": "2", "containers[side].env[TOKEN].value": "7"}},
			map[string]Fields{"A": {"containers[main].env[TOKEN].value": "3", "containers[side].env[TOKEN].value": "8"}},
			[]string{"A: containers[side].env[TOKEN].value is 8 instead of 7"},
		},
		"an element that only a disturbed run has": {
			map[string]Fields{"A": {"env[TOKEN].value": "1"}}, map[string]Fields{"A": {"env[TOKEN].value": "2"}},
			map[string]Fields{"A": {"env[TOKEN].value": "3", "env[DEBUG].value": "yes"}}, []string{"A: env[DEBUG].value is yes instead of absent"},
		},
		"another key each time, within an element that only a disturbed run has": {
			map[string]Fields{"A": {"containers[main].mounts[a-1].path": "/"}}, map[string]Fields{"A": {"containers[main].mounts[a-2].path": "/"}},
			map[string]Fields{"A": {"containers[side].mounts[a-3].path": "/"}}, nil,
		},
		"a list that is empty at times": {
			map[string]Fields{"A": {"list[0]": "1"}}, map[string]Fields{"A": {"list": "[]"}},
			map[string]Fields{"A": {"list": "[]"}}, nil,
		},
		"a map that is empty at times": {
			map[string]Fields{"A": {"map.key": "1"}}, map[string]Fields{"A": {"map": "{}"}},
			map[string]Fields{"A": {"map": "{}"}}, nil,
		},
		"a value that is another one each time must be there": {
			map[string]Fields{"A": {"data.token": "1", "env[TOKEN].value": "1"}}, map[string]Fields{"A": {"data.token": "2", "env[TOKEN].value": "2"}},
			map[string]Fields{"A": {"data": "{}"}}, []string{"A: data.token is absent instead of 1", "A: env[TOKEN].value is absent instead of 1"},
		},
		"a value that is not always there": {
			map[string]Fields{"A": {"data.token": "1"}}, map[string]Fields{"A": {}},
			map[string]Fields{"A": {}}, nil,
		},
		"a shorter list": {
			map[string]Fields{"A": {"list[0]": "1", "list[1]": "2"}}, map[string]Fields{"A": {"list[0]": "3", "list[1]": "4"}},
			map[string]Fields{"A": {"list[0]": "5"}}, nil,
		},
		"an object that is not always there": {
			map[string]Fields{"A": {}, "Pod b": {}}, map[string]Fields{"Pod b": {}},
			map[string]Fields{}, []string{"Pod b: absent instead of present"},
		},
		"a random name": {
			map[string]Fields{"Job a-x1y2z": {}, "Job b": {}}, map[string]Fields{"Job a-k3l4m": {}, "Job b": {}},
			map[string]Fields{"Job a-p5q6r": {}}, []string{"Job b: absent instead of present"},
		},
		"random names are still counted": {
			map[string]Fields{"Job a-x1y2z": {}}, map[string]Fields{"Job a-k3l4m": {}},
			map[string]Fields{"Job a-p5q6r": {}, "Job a-s7t8u": {}}, []string{"Job a-*: 2 of them instead of 1 of them"},
		},
		"more random names in one run than in the other": {
			map[string]Fields{"Job a-x1y2z": {}, "Job a-v0w9x": {}}, map[string]Fields{"Job a-k3l4m": {}},
			map[string]Fields{"Job a-p5q6r": {}}, nil,
		},
		"a short last part is not random": {
			map[string]Fields{"Pod a-0": {}}, map[string]Fields{"Pod a-0": {}},
			map[string]Fields{"Pod a-0": {}, "Pod a-1": {}}, []string{"Pod a-1: present instead of absent"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mask := NewMask()
			mask.Learn(shape(test.first), shape(test.second))
			expectLines(t, mask.Differences(shape(test.first), shape(test.second)))
			expectLines(t, mask.Differences(shape(test.first), shape(test.third)), test.want...)
		})
	}
	// What is expected need not be one of the runs that were learned from: a random key of it says nothing either.
	volumes := func(random, size string) Shape {
		return shape(map[string]Fields{"A": {"volumes[" + random + "].size": "s", "volumes[data].size": size}})
	}
	mask := NewMask()
	mask.Learn(volumes("a-1", "s"), volumes("a-2", "s"))
	for _, random := range []string{"a-1", "a-2"} { // a restart in each of them
		mask.Learn(volumes(random, "s"), volumes(random, "s"))
	}
	expectLines(t, mask.Differences(volumes("a-3", "s"), volumes("a-4", "s")))
	expectLines(t, mask.Differences(volumes("a-3", "s"), volumes("a-1", "t")), "A: volumes[data].size is t instead of s")
}

// A name that is the same on two clusters is not random, even if it begins like one that is.
func TestNamesThatBeginLikeRandomOnes(t *testing.T) {
	shape := func(random, value string) Shape {
		return Shape{Objects: map[string]Fields{"Secret default/db-" + random: {"data.token": "x"}, "Secret default/db-creds": {"data.user": value}}}
	}
	mask := NewMask()
	mask.LearnRuns(shape("x2kdl", "me"), shape("9f8s2", "me"))
	if found := mask.Differences(shape("x2kdl", "me"), shape("7q4w1", "you")); len(found) != 1 || found[0].Object != "Secret default/db-creds" {
		t.Errorf("found %v", found)
	}
	if found := mask.Differences(shape("x2kdl", "me"), shape("7q4w1", "me")); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

// Objects may have the random name of another one in theirs.
func TestNamesThatContainRandomOnes(t *testing.T) {
	shape := func(random string, workers int) Shape {
		return Shape{
			Objects: map[string]Fields{
				"RayCluster default/job-" + random: {}, "Pod default/job-" + random + "-head": {"spec.a": "1"}, "Service default/job-" + random + "-head-svc": {},
				"Service default/job-internal-api": {"spec.a": random[:1]},
			},
			Counts: map[string]int{"Pod default/job-" + random + "-worker-*": workers},
		}
	}
	mask := NewMask()
	mask.LearnRuns(shape("x2kdl", 2), shape("x8f2s", 2))
	expectLines(t, mask.Differences(shape("x2kdl", 2), shape("x7q4w", 2)))
	expectLines(t, mask.Differences(shape("x2kdl", 2), shape("y7q4w", 3)),
		"Service default/job-internal-api: spec.a is y instead of x", "Pod default/job-*-worker-*: 3 of them instead of 2 of them")
	exporter := shape("x7q4w", 2)
	exporter.Objects["Deployment default/job-exporter-main"] = Fields{"spec.a": "1"}
	expectLines(t, mask.Differences(shape("x2kdl", 2), exporter), "Deployment default/job-exporter-main: present instead of absent")
	if !mask.HidesObject("Pod default/job-y7q4w-head") || mask.HidesObject("Service default/job-internal-api") {
		t.Error("it does not know which names are random")
	}
}

// A pod that failed does not run any more, whatever its name is.
func TestPodsThatFailed(t *testing.T) {
	pod := func(phase string) string {
		return "kind: Pod\nmetadata: {generateName: worker-, name: worker-abcde}\nstatus: {phase: " + phase + "}"
	}
	running, failed := ShapeOf(stateOf(t, pod("Running")), nil), ShapeOf(stateOf(t, pod("Failed")), nil)
	if found := NewMask().Differences(running, failed); len(found) != 2 {
		t.Errorf("found %v", found)
	}
}

func TestMaskCanBeStored(t *testing.T) {
	mask := NewMask()
	mask.Learn(
		shape(map[string]Fields{"A": {"x": "1", "y": "1"}, "Job a-x1y2z": {}, "B": {}}),
		shape(map[string]Fields{"A": {"x": "2", "y": "2"}, "Job a-k3l4m": {}}),
	)
	if mask.Size() != 4 { // two fields, one kind of name, one object
		t.Errorf("%d are masked, want 4: %+v", mask.Size(), mask)
	}
	encoded, err := json.Marshal(mask)
	if err != nil {
		t.Fatal(err)
	}
	again := NewMask()
	if err := json.Unmarshal(encoded, again); err != nil {
		t.Fatal(err)
	}
	if again.Size() != mask.Size() || !again.HidesObject("B") || !again.HidesObject("Job a-12345") || again.HidesObject("A") {
		t.Errorf("got %+v, want %+v", again, mask)
	}
}

// What controllers make of an object differs because the object does.
func TestTheCauseComesBeforeWhatFollowsFromIt(t *testing.T) {
	want := Shape{Objects: map[string]Fields{"StatefulSet default/a": {"spec.replicas": "2", "status.replicas": "2"}}, Counts: map[string]int{"PersistentVolume pvc-*": 2}}
	got := Shape{Objects: map[string]Fields{"StatefulSet default/a": {"spec.replicas": "4", "status.replicas": "4"}, "PersistentVolumeClaim default/d-a-2": {}}, Counts: map[string]int{"PersistentVolume pvc-*": 4}}
	var order []string
	for _, d := range NewMask().Differences(want, got) {
		order = append(order, d.Object+" "+d.Path)
	}
	if wanted := []string{"StatefulSet default/a spec.replicas", "PersistentVolumeClaim default/d-a-2 ", "PersistentVolume pvc-* ", "StatefulSet default/a status.replicas"}; !slices.Equal(order, wanted) {
		t.Errorf("the order is %q", order)
	}
}
