// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"
)

func TestLackingFields(t *testing.T) {
	const begin = "kind: CustomResourceDefinition\nspec:\n  versions:\n  - name: v1\n    schema: {openAPIV3Schema: "
	for name, test := range map[string]struct {
		ours, theirs string
		want         []string
	}{
		"same":      {"{properties: {spec: {properties: {size: {}}}}}}", "{properties: {spec: {properties: {size: {}}}}}}", nil},
		"ours more": {"{properties: {spec: {properties: {size: {}, colour: {}}}}}}", "{properties: {spec: {properties: {size: {}}}}}}", nil},
		"a field":   {"{properties: {spec: {properties: {size: {}}}}}}", "{properties: {spec: {properties: {size: {}, colour: {}}}}}}", []string{"v1 spec.colour"}},
		"in a list": {
			"{properties: {ports: {items: {properties: {a: {}}}}}}}", "{properties: {ports: {items: {properties: {a: {}, b: {}}}}}}}", []string{"v1 ports[].b"},
		},
		"in a map": {
			"{properties: {m: {additionalProperties: {properties: {a: {}}}}}}}", "{properties: {m: {additionalProperties: {properties: {b: {}}}}}}}", []string{"v1 m[*].b"},
		},
		"everything is kept": {"{properties: {spec: {x-kubernetes-preserve-unknown-fields: true}}}}", "{properties: {spec: {properties: {a: {}}}}}}", nil},
		"a version":          {"{}}", "{}}\n  - name: v2", []string{"version v2"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lackingIn(parse(t, begin+test.ours)[0], parse(t, begin+test.theirs)[0])
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDowngradesAreExplained(t *testing.T) {
	err := &DowngradeError{Definition: "ships.sea.example.com", Lacking: []string{"version v2", "v1 a", "v1 b", "v1 c", "v1 d"}}
	const want = "CRD ships.sea.example.com on the server is of another version: replacing it would drop version v2, v1 a, v1 b and 2 more"
	if err.Error() != want {
		t.Errorf("got %s", err)
	}
}
