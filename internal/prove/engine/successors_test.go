// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/opdock/opdock/internal/prove/compare"
)

// TestSuccessors is about objects with a number in their name, of which there is a new one for each attempt.
func TestSuccessors(t *testing.T) {
	present := func(object string) compare.Difference {
		return compare.Difference{Object: object, Want: "absent", Got: "present"}
	}
	absent := func(object string) compare.Difference {
		return compare.Difference{Object: object, Want: "present", Got: "absent"}
	}
	want := compare.Shape{Objects: map[string]compare.Fields{"Request default/web-1": {}, "Pod default/web-1": {}}}
	members := compare.Shape{Objects: map[string]compare.Fields{"Member default/web-0": {}, "Member default/web-1": {}}}
	later := compare.Shape{Objects: map[string]compare.Fields{"Request default/web-3": {}}}
	c := sailing()
	c.o.Subjects = append(c.o.Subjects, sceneObject("Frigate", "victory-1"), sceneObject("Frigate", "victory-2"))
	fleet := compare.Shape{Objects: map[string]compare.Fields{"Frigate default/victory-1": {}}}
	revision := compare.Difference{Object: "Certificate default/web", Path: "status.revision", Want: "1", Got: "2"}
	ready := compare.Difference{Object: "Certificate default/web", Path: "status.conditions[Ready].status", Want: "True", Got: "False"}
	for about, test := range map[string]struct {
		want    compare.Shape
		found   []compare.Difference
		changed bool
		left    int
	}{
		"a second attempt instead of the first": {want, []compare.Difference{absent("Request default/web-1"), present("Request default/web-2"), revision}, false, 0},
		"a status that says more than that":     {want, []compare.Difference{absent("Request default/web-1"), present("Request default/web-2"), ready}, false, 1},
		"no attempt":                            {want, []compare.Difference{absent("Request default/web-1"), revision}, false, 2},
		"an attempt of something else":          {want, []compare.Difference{absent("Request default/web-1"), present("Request default/mail-2")}, false, 2},
		"one more":                              {want, []compare.Difference{present("Request default/web-2"), revision}, false, 2},
		"one more after a change":               {want, []compare.Difference{present("Request default/web-2"), revision}, true, 0},
		"another pod":                           {want, []compare.Difference{absent("Pod default/web-1"), present("Pod default/web-2")}, true, 2},
		"an earlier attempt":                    {later, []compare.Difference{absent("Request default/web-3"), present("Request default/web-2")}, false, 2},
		"two attempts after a change":           {want, []compare.Difference{present("Request default/web-2"), present("Request default/web-3")}, true, 0},
		"one more member after a change":        {members, []compare.Difference{present("Member default/web-2")}, true, 1},
		"another member":                        {members, []compare.Difference{absent("Member default/web-1"), present("Member default/web-2")}, false, 2},
		"a custom resource":                     {fleet, []compare.Difference{present("Frigate default/victory-2")}, true, 1},
		"names without numbers":                 {want, []compare.Difference{absent("Request default/web-a"), present("Request default/web-b")}, true, 2},
	} {
		if left := c.withoutSuccessors(test.found, test.want, test.changed); len(left) != test.left {
			t.Errorf("%s: %v are left", about, left)
		}
	}
}
