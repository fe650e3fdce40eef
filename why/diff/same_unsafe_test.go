// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build opdock_unsafe

package diff

import (
	"reflect"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

func init() { sameInMemory = areSame }

func areSame(a, b client.Object) bool {
	budget := 1 << 20
	return shapeOf(reflect.TypeOf(a).Elem()).isSame(reflect.ValueOf(a).UnsafePointer(), reflect.ValueOf(b).UnsafePointer(), &budget)
}

// What cannot be looked at in memory is not called the same. It is compared by what it means then.
func TestSameInMemory(t *testing.T) {
	type tree struct {
		Name     string
		Children []tree
		Any      any
		Numbers  map[string]int
		Labels   map[string]string
		First    *tree
	}
	type array struct{ Numbers [2]int }
	of := func(name string, children ...tree) tree { return tree{Name: name, Children: children} }
	tests := map[string]struct {
		a, b   any // pointers
		budget int
		same   bool
	}{
		"texts":                        {new("a"), new("a"), 1, true},
		"other texts":                  {new("a"), new("b"), 1, false},
		"nil and empty":                {&tree{Labels: map[string]string{}, Children: []tree{}}, &tree{}, 100, true},
		"nil and something":            {&tree{First: &tree{}}, &tree{}, 100, false},
		"a tree":                       {&tree{Children: []tree{of("a", of("b")), of("c")}}, &tree{Children: []tree{of("a", of("b")), of("c")}}, 100, true},
		"another tree":                 {&tree{Children: []tree{of("a", of("b")), of("c")}}, &tree{Children: []tree{of("a", of("x")), of("c")}}, 100, false},
		"a tree that is too large":     {&tree{Children: []tree{of("a", of("b")), of("c")}}, &tree{Children: []tree{of("a", of("b")), of("c")}}, 10, false},
		"more labels than may be":      {&tree{Labels: map[string]string{"a": "", "b": ""}}, &tree{Labels: map[string]string{"a": "", "b": ""}}, 8, false},
		"labels":                       {&tree{Labels: map[string]string{"a": "", "b": ""}}, &tree{Labels: map[string]string{"a": "", "b": ""}}, 100, true},
		"other labels":                 {&tree{Labels: map[string]string{"a": "", "b": ""}}, &tree{Labels: map[string]string{"a": "", "c": ""}}, 100, false},
		"something of an unknown kind": {&tree{Any: 1}, &tree{Any: 1}, 100, false},
		"a map of an unknown kind":     {&tree{Numbers: map[string]int{}}, &tree{Numbers: map[string]int{}}, 100, false},
		"an array":                     {&array{}, &array{}, 100, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := reflect.ValueOf(test.a), reflect.ValueOf(test.b)
			if got := shapeOf(a.Type().Elem()).isSame(a.UnsafePointer(), b.UnsafePointer(), &test.budget); got != test.same {
				t.Errorf("same is %t", got)
			}
		})
	}
}
