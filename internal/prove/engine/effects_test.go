// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// TestLearnEffect has properties with and without an effect.
func TestLearnEffect(t *testing.T) {
	key := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "orders"}
	with := func(data string) *made {
		return &made{state: world.State{key: {Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "orders", "namespace": "default"}, "data": map[string]any{"a": data},
		}}}, written: map[string]bool{key.String(): true}}
	}
	before := with("1").state
	before[world.Key{Group: "sea", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "a"}] = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea/v1", "kind": "Frigate", "metadata": map[string]any{"name": "a", "namespace": "default"},
		"spec": map[string]any{"guns": int64(1), "flag": "blue", "crew": "x", "name": "y", "gone": "z", "sails": "y", "ropes": "z", "tls": map[string]any{"secret": "s"}, "pod": map[string]any{"image": "a"}},
	}}
	c := &campaign{mask: compare.NewMask(), reference: []*stage{{state: before}}}
	c.o.Ignores = func(*Observation) string { return "not judged, and still an effect" }
	fresh := true
	try := func(path string, value any, class values.Class, after string) {
		change := values.Change{Path: append([]string{"spec"}, strings.Split(path, ".")...), Value: value, Class: class}
		c.learnEffect(&Plan{Variant: "valid", Step: 1, Object: "Frigate default/a", Path: change.Path, Value: change}, with(after), fresh)
	}
	try("guns", int64(2), values.Valid, "2")
	try("flag", "red", values.Valid, "1")
	try("crew", "a", values.Valid, "1")
	try("crew", "b", values.Valid, "3")
	try("name", "x", values.Limit, "1")
	try("gone", nil, values.Valid, "1")
	try("tls", map[string]any{"secret": map[string]any{}}, values.Valid, "1")
	try("pod", map[string]any{"a": "b"}, values.Valid, "1")
	try("pod.image", "nginx", values.Valid, "2")
	try("unset", "perhaps its default", values.Valid, "1")
	try("sails", "a", values.Valid, "1")
	fresh = false // a run that ended with a finding, or without a fresh start
	try("sails", "b", values.Valid, "2")
	try("ropes", "a", values.Valid, "1")
	if got := c.withoutEffect(); !slices.Equal(got, []string{"Frigate spec.flag"}) {
		t.Errorf("%v", got)
	}
}
