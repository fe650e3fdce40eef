// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/world"
)

// scaledDown is a StatefulSet of two pods that had three, with two other claims.
func scaledDown() world.State {
	state := world.State{}
	add := func(group, resource, kind, namespace, name string, fields map[string]any) {
		object := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "spec": fields}}
		object.SetNamespace(namespace)
		object.SetName(name)
		state[world.Key{Group: group, Resource: resource, Kind: kind, Namespace: namespace, Name: name}] = object
	}
	template := map[string]any{"metadata": map[string]any{"name": "data"}}
	add("apps", "statefulsets", "StatefulSet", "default", "victory", map[string]any{"replicas": int64(2), "volumeClaimTemplates": []any{template}})
	for _, name := range []string{"data-victory-0", "data-victory-1", "data-victory-2", "data-other-5", "logs-victory-7"} {
		add("", "persistentvolumeclaims", "PersistentVolumeClaim", "default", name, nil)
		add("", "persistentvolumes", "PersistentVolume", "", "of-"+name, map[string]any{"claimRef": map[string]any{"namespace": "default", "name": name}})
	}
	add("", "persistentvolumeclaims", "PersistentVolumeClaim", "elsewhere", "data-victory-2", nil)
	return state
}

func TestClaimsThatAStatefulSetKeeps(t *testing.T) {
	deletion := write{Moment: Moment{Verb: "delete", Resource: "persistentvolumeclaims", Name: "data-victory-2"}}
	unused := []string{"PersistentVolume of-data-victory-2", "PersistentVolumeClaim default/data-victory-2"}
	for name, test := range map[string]struct {
		writes []write
		step   Step
		gone   []string
	}{
		"an operator that deletes no claims":          {nil, Step{}, unused},
		"an operator that does":                       {[]write{deletion}, Step{}, nil},
		"one that does so when its object is deleted": {[]write{deletion}, Step{Deletes: true}, unused},
		"one that does so when everything is deleted": {[]write{deletion}, Step{Ends: true}, unused},
	} {
		c := sailing()
		c.o.Steps[0] = test.step
		s := &stage{state: scaledDown(), writes: test.writes}
		before := slices.Sorted(maps.Keys(c.shapeOf(s.state).Objects))
		c.learnClaims([]*stage{s})
		gone := slices.DeleteFunc(before, func(object string) bool {
			_, still := s.shape.Objects[object]
			return still
		})
		if !slices.Equal(gone, test.gone) {
			t.Errorf("%s: not compared are %q, want %q", name, gone, test.gone)
		}
	}
}

// TestClaimsOfDeletedStatefulSets is about what Kubernetes leaves when a StatefulSet is deleted. An operator that says nothing about
// claims is not to blame.
func TestClaimsOfDeletedStatefulSets(t *testing.T) {
	deletion := write{Moment: Moment{Verb: "delete", Resource: "persistentvolumeclaims", Name: "data-victory-2"}}
	kept := []string{"PersistentVolume of-data-other-5", "PersistentVolume of-logs-victory-7", "PersistentVolumeClaim default/data-other-5",
		"PersistentVolumeClaim default/logs-victory-7", "PersistentVolumeClaim elsewhere/data-victory-2"}
	all := slices.Clone(kept)
	for _, ordinal := range []string{"0", "1", "2"} {
		all = append(all, "PersistentVolume of-data-victory-"+ordinal, "PersistentVolumeClaim default/data-victory-"+ordinal)
	}
	slices.Sort(all)
	for name, test := range map[string]struct {
		writes []write
		owned  bool
		want   []string
	}{
		"an operator that deletes no claims": {want: kept},
		"an operator that does":              {writes: []write{deletion}, want: all},
		"a claim that goes with its owner":   {owned: true, want: slices.Sorted(slices.Values(append([]string{"PersistentVolume of-data-victory-0", "PersistentVolumeClaim default/data-victory-0"}, kept...)))},
	} {
		c := sailing()
		full, end := &stage{state: scaledDown(), writes: test.writes}, &stage{state: scaledDown()}
		maps.DeleteFunc(end.state, func(key world.Key, object *unstructured.Unstructured) bool {
			if test.owned && key.Name == "data-victory-0" {
				object.SetOwnerReferences([]metav1.OwnerReference{{Kind: "StatefulSet", Name: "victory", UID: "u2"}})
			}
			return key.Resource == "statefulsets"
		})
		stages := []*stage{full, full, end}
		for key, object := range full.state {
			c.sets.see(key, object)
		}
		var got []string
		for _, o := range c.leftovers(2, c.withoutKeptClaims(stages), world.State{}) {
			got = append(got, o.Object)
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: left behind are %q, want %q", name, got, test.want)
		}
		c.learnClaims(stages)
		if got := slices.Sorted(maps.Keys(end.shape.Objects)); !slices.Equal(got, test.want) {
			t.Errorf("%s: compared are %q, want %q", name, got, test.want)
		}
	}
}

// An operator that sends many requests needs longer than a step may take, as long as each answer takes a second.
func TestSlowAnswersEnd(t *testing.T) {
	r := &run{board: newSwitchboard(func(m Moment) Moment { return m })}
	d, err := slow(r, &Plan{Family: "slow", Variant: "answers"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing is waited for
	if verdict := d.faults.request(ctx, Moment{}); verdict.Say != "slow" {
		t.Errorf("before its end: %+v", verdict)
	}
	if d.heal == nil || d.heal(ctx) != nil {
		t.Fatal("it does not end")
	}
	if verdict := d.faults.request(ctx, Moment{}); verdict.Say != "" {
		t.Errorf("after its end: %+v", verdict)
	}
}
