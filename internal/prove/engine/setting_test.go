// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// TestPropertiesNamedLikeThePast has a variable that carries a property, and annotations that only count changes.
func TestPropertiesNamedLikeThePast(t *testing.T) {
	frigate := world.Key{Group: "sea", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "a"}
	key := world.Key{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "default", Name: "web"}
	const revisionPath = "spec.template.spec.containers[web].env[GIT_REVISION].value"
	with := func(revision, generation string) *made {
		return &made{written: map[string]bool{key.String(): true}, state: world.State{key: {Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "default", "annotations": map[string]any{"generation": generation}},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "env": []any{map[string]any{"name": "GIT_REVISION", "value": revision}}}}}}},
		}}}}
	}
	for name, test := range map[string]struct {
		property         string
		old, value       any
		changed, fresh   *made
		deviates, traces bool
	}{
		"a text that does not arrive":    {"revision", "main", "next", with("main", "2"), with("next", "1"), true, false},
		"a text that is not removed":     {"revision", "main", nil, with("main", "2"), with("HEAD", "1"), true, false},
		"a number that does not arrive":  {"revision", int64(7), int64(8), with("7", "2"), with("8", "1"), true, false},
		"a text that arrives":            {"revision", "main", "next", with("next", "2"), with("next", "1"), false, false},
		"a count like another property":  {"guns", int64(2), int64(1), with("main", "2"), with("main", "1"), false, false},
		"a count beside a text":          {"captain", "hull", "stewart", with("1", "2"), with("2", "1"), false, false},
		"a text that is not taken back":  {"revision", "next", "main", with("main", "2"), with("next", "1"), false, true},
		"a text of which both have some": {"revision", "a1", "a2", with("a1 a2", "2"), with("a2 a1", "1"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{test.property: test.old}
			c := &campaign{mask: compare.NewMask(), reference: []*stage{{state: world.State{frigate: &unstructured.Unstructured{Object: map[string]any{"spec": spec}}}}}}
			p := &Plan{Family: "input", Step: 1, Object: frigate.String(), Value: values.Change{Path: []string{"spec", test.property}, Value: test.value}}
			if test.traces {
				want, got := c.madeShapes(test.fresh, test.changed)
				traces := map[string]bool{}
				for _, d := range c.mask.Differences(want, got) {
					traces[d.Path] = isTrace(c.settingOf(p), d, compare.Shape{})
				}
				if !maps.Equal(traces, map[string]bool{"metadata.annotations.generation": true, revisionPath: false}) {
					t.Errorf("the differences are traces: %v", traces)
				}
				return
			}
			if found := c.deviates(p, test.changed, test.fresh, nil); (len(found) > 0) != test.deviates {
				t.Errorf("%v", found)
			}
		})
	}
}

// TestAddressesThatDoNotArrive are compared if the scenario or the plan names them. Others are allocated.
func TestAddressesThatDoNotArrive(t *testing.T) {
	frigate := world.Key{Group: "sea", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "a"}
	key := world.Key{Resource: "services", Kind: "Service", Namespace: "default", Name: "web"}
	with := func(address string) *made {
		return &made{written: map[string]bool{key.String(): true}, state: world.State{key: {Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web", "namespace": "default"}, "spec": map[string]any{"loadBalancerIP": address},
		}}}}
	}
	for name, test := range map[string]struct {
		texts          []string
		value          any
		changed, fresh string
		want           string
	}{
		"it stays as it was":           {[]string{"192.0.2.10"}, "192.0.2.11", "192.0.2.10", "192.0.2.11", "192.0.2.11 instead of 192.0.2.10"},
		"it arrives":                   {[]string{"192.0.2.10"}, "192.0.2.11", "192.0.2.11", "192.0.2.11", ""},
		"it does not arrive":           {nil, "192.0.2.11", "198.51.100.1", "192.0.2.11", "192.0.2.11 instead of (address)"},
		"the one of the scenario goes": {[]string{"192.0.2.10"}, int64(3), "198.51.100.1", "192.0.2.10", "192.0.2.10 instead of (address)"},
		"both are allocated":           {nil, int64(3), "198.51.100.1", "198.51.100.2", ""},
	} {
		state := with("192.0.2.10").state
		state[frigate] = &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default"}, "spec": map[string]any{"address": "192.0.2.10"}}}
		c := &campaign{o: Options{Texts: test.texts}, mask: compare.NewMask(), reference: []*stage{{state: state}}}
		p := &Plan{Family: "input", Variant: "valid", Step: 1, Object: frigate.String(), Value: values.Change{Path: []string{"spec", "address"}, Class: values.Valid, Value: test.value}}
		got := ""
		if found := c.deviates(p, with(test.changed), with(test.fresh), nil); len(found) > 0 {
			got = found[0].Want + " instead of " + found[0].Got
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
		if test.value == "192.0.2.11" && test.texts != nil {
			c.learnEffect(p, with(test.fresh), true)
			if none := c.withoutEffect(); len(none) > 0 {
				t.Errorf("%s: %q are said to have no effect", name, none)
			}
		}
	}
}
