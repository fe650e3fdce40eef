// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// renamedField is a CRD whose first version is not the preferred one: guns were renamed to cannons, which are required.
const renamedField = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: frigates.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Frigate, plural: frigates}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: false
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [guns], properties: {guns: {type: integer}}}}}}
    - name: v2
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, required: [cannons], properties: {cannons: {type: integer, maximum: 120}}}}}}
`

// sailingAs is a campaign whose sample has the version v1, and whose cluster shows it with this version and spec.
func sailingAs(version string, spec map[string]any) *campaign {
	c := sailing()
	key, _ := find(c.reference[1].state, frigate())
	live := frigate()
	live.SetAPIVersion("sea.example.com/" + version)
	live.Object["spec"] = spec
	c.reference[1].state[key] = live
	return c
}

// A sample may have another version than the one in which the cluster is watched.
func TestInputIsOfTheVersionThatIsWatched(t *testing.T) {
	definitions := []*unstructured.Unstructured{read(t, renamedField)}
	for version, test := range map[string]struct {
		spec  map[string]any
		field string
	}{
		"v1": {map[string]any{"guns": int64(100)}, "guns"},
		"v2": {map[string]any{"cannons": int64(100)}, "cannons"},
	} {
		c := sailingAs(version, test.spec)
		plans := slices.DeleteFunc(c.inputs(definitions), func(p *Plan) bool { return p.Variant == unchanged || p.Path[0] == "metadata" })
		if len(plans) == 0 || len(c.unplanned) > 0 {
			t.Errorf("%s: %d plans, not planned %+v", version, len(plans), c.unplanned)
		}
		for _, p := range plans {
			if !slices.Contains(p.Path, test.field) {
				t.Errorf("%s: %s changes %q", version, p.Says, p.Path)
			}
		}
	}
}

// Values that cannot be tried are named in the report, with the reason.
func TestInputThatIsNotTried(t *testing.T) {
	for about, test := range map[string]struct {
		version string
		want    string
	}{
		"an object that is not valid": {"v2", "input values of Frigate default/victory: it does not satisfy the schema of sea.example.com/v2: spec.cannons: Required value"},
		"a version without a schema":  {"v3", "input values of Frigate default/victory: its CRD has no schema of sea.example.com/v3"},
		"an object that is gone":      {"", `input values of Frigate default/victory: it does not exist at the end of step "change"`},
	} {
		t.Run(about, func(t *testing.T) {
			c := sailingAs(test.version, map[string]any{"guns": int64(100)})
			if test.version == "" {
				c.reference[1].state = world.State{}
			}
			c.o.Operator.Project = &project.Project{Name: "ship"}
			if plans := c.inputs([]*unstructured.Unstructured{read(t, renamedField)}); len(plans) > 0 {
				t.Errorf("got %d plans", len(plans))
			}
			g := gathered()
			g.campaign = c
			var left []string
			for _, one := range g.result(built{}, false).Report.NotTried {
				left = append(left, one.Family+" "+one.What+": "+strings.TrimSpace(one.Reason))
			}
			expectLines(t, left, test.want)
			c.o.Only = crashAt("a")
			if left := g.result(built{}, false).Report.NotTried; len(left) > 0 {
				t.Errorf("a replay reports %+v", left)
			}
		})
	}
}

// A replay reads a plan from a file, and must compare the same values.
func TestChangesFromAFile(t *testing.T) {
	change := values.Change{Path: []string{"spec", "port"}, Value: int64(30077), Class: values.Valid, Also: []values.Change{{Path: []string{"spec", "on"}, Value: map[string]any{"n": int64(1)}}}}
	encoded, err := json.Marshal(&Plan{Family: "input", Value: change})
	if err != nil {
		t.Fatal(err)
	}
	var plan Plan
	if err := json.Unmarshal(encoded, &plan); err != nil {
		t.Fatal(err)
	}
	if got, err := changeOf(plan.Value); err != nil || !reflect.DeepEqual(got, change) {
		t.Errorf("got %+v (%v), want %+v", got, err, change)
	}
	if got := textsOf(&plan); !slices.Equal(got, []string{"30077"}) {
		t.Errorf("the texts are %q", got)
	}
}
