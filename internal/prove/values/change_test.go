// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	for name, test := range map[string]struct {
		change Change
		want   string // JSON, or the error
	}{
		"set":                         {Change{Path: []string{"spec", "a"}, Value: int64(2)}, `{"spec":{"a":2,"list":[{"x":1},{"x":2}]}}`},
		"an int is an int64":          {Change{Path: []string{"spec", "a"}, Value: 2}, `{"spec":{"a":2,"list":[{"x":1},{"x":2}]}}`},
		"a whole float64 is an int64": {Change{Path: []string{"spec", "a"}, Value: 2.0}, `{"spec":{"a":2,"list":[{"x":1},{"x":2}]}}`},
		"add":                         {Change{Path: []string{"spec", "b", "c"}, Value: true}, `{"spec":{"a":1,"b":{"c":true},"list":[{"x":1},{"x":2}]}}`},
		"remove":                      {Change{Path: []string{"spec", "list"}}, `{"spec":{"a":1}}`},
		"remove what is not":          {Change{Path: []string{"spec", "b", "c"}}, `{"spec":{"a":1,"list":[{"x":1},{"x":2}]}}`},
		"in an element":               {Change{Path: []string{"spec", "list", "1", "x"}, Value: int64(3)}, `{"spec":{"a":1,"list":[{"x":1},{"x":3}]}}`},
		"remove an element":           {Change{Path: []string{"spec", "list", "0"}}, `{"spec":{"a":1,"list":[{"x":2}]}}`},
		"append":                      {Change{Path: []string{"spec", "list", "2"}, Value: "z"}, `{"spec":{"a":1,"list":[{"x":1},{"x":2},"z"]}}`},
		"also": {
			Change{Path: []string{"spec", "a"}, Value: int64(2), Also: []Change{{Path: []string{"spec", "on"}, Value: true}}},
			`{"spec":{"a":2,"list":[{"x":1},{"x":2}],"on":true}}`,
		},
		"no such element":   {Change{Path: []string{"spec", "list", "5"}, Value: 1}, `changing spec.list[5]: "5" is no index in a list of 2`},
		"below a number":    {Change{Path: []string{"spec", "a", "b"}, Value: 1}, `changing spec.a.b: "b" is below a int64, which has no fields`},
		"a key with a dot":  {Change{Path: []string{"spec", "example.com/a"}, Value: "b"}, `{"spec":{"a":1,"example.com/a":"b","list":[{"x":1},{"x":2}]}}`},
		"no key in a list ": {Change{Path: []string{"spec", "list", "x"}, Value: 1}, `changing spec.list.x: "x" is no index in a list of 2`},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{"spec": map[string]any{"a": int64(1), "list": []any{map[string]any{"x": int64(1)}, map[string]any{"x": int64(2)}}}}
			before := normalize(object)
			changed, err := test.change.Apply(object)
			var got string
			if err != nil {
				got = err.Error()
			} else {
				raw, err := json.Marshal(changed)
				if err != nil {
					t.Fatal(err)
				}
				got = string(raw)
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if !reflect.DeepEqual(object, before) {
				t.Error("the object was changed")
			}
		})
	}
}

func TestStringShortensLongValues(t *testing.T) {
	change := Change{Path: []string{"spec", "labels", "example.com/a"}, Value: strings.Repeat("ü", 1000), Why: "very long"}
	want := `spec.labels["example.com/a"] = "` + strings.Repeat("ü", 59) + `… (1002 characters) (very long)`
	if got := change.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Patterns as CRDs have them.
func TestMatching(t *testing.T) {
	for _, pattern := range []string{
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^([0-9]+)(Mi|Gi|Ti)$`, `^\S+$`, `^(\d+h)?(\d+m)?(\d+s)?$`, `^v\d+\.\d+\.\d+$`, `^s3://.+`,
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`, `^(?i:abc)[^x]{2,4}$`, `^(/|/[a-z]+)$`, `\bword\b`,
		`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`,
		`^sha256:[a-f0-9]{64}$`, `^[A-Za-z_][A-Za-z0-9_]*$`, `^\p{L}+$`,
	} {
		found := matching(pattern)
		if len(found) == 0 {
			t.Errorf("%s: nothing", pattern)
		}
		for _, value := range found {
			if !regexp.MustCompile(pattern).MatchString(value) {
				t.Errorf("%s does not match %q", pattern, value)
			}
		}
	}
	if found := matching("("); found != nil {
		t.Errorf("got %q for what is no pattern", found)
	}
}

// TestFrom says what a change does to an object.
func TestFrom(t *testing.T) {
	object := map[string]any{"spec": map[string]any{"port": int64(80), "ports": []any{map[string]any{"name": "http"}}}}
	for want, change := range map[string]Change{
		`spec.port changes from 80 to 81`:                                    {Path: []string{"spec", "port"}, Value: int64(81)},
		`spec.ports[0].name changes from "http" to "web"`:                    {Path: []string{"spec", "ports", "0", "name"}, Value: "web"},
		`spec.size is set to 3`:                                              {Path: []string{"spec", "size"}, Value: int64(3)},
		`spec.port is removed`:                                               {Path: []string{"spec", "port"}},
		`spec.tls.secret is set to "a", and spec.tls.enabled is set to true`: {Path: []string{"spec", "tls", "secret"}, Value: "a", Also: []Change{{Path: []string{"spec", "tls", "enabled"}, Value: true}}},
	} {
		if got := change.From(object); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
		if was := strings.Contains(want, "changes from") || strings.Contains(want, "removed"); change.IsSet(object) != was {
			t.Errorf("%s: it was set before: %v", want, !was)
		}
	}
}
