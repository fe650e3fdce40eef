// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func names(d Delta) (set []string) {
	for _, o := range d.Objects {
		set = append(set, o.Name)
	}
	slices.Sort(set)
	return set
}

func TestSinceReturnsOnlyChanges(t *testing.T) {
	model := NewModel()
	model.Set(Object{UID: "1", Name: "one"})
	model.Set(Object{UID: "2", Name: "two"})
	first := model.Since(0)
	if got := names(first); !first.Whole || !slices.Equal(got, []string{"one", "two"}) {
		t.Fatalf("the first delta has %v, whole %v", got, first.Whole)
	}
	if nothing := model.Since(first.Revision); nothing.Whole || len(nothing.Objects)+len(nothing.Removed) > 0 {
		t.Errorf("nothing changed, but the delta is %+v", nothing)
	}
	next := model.Next()
	model.Set(Object{UID: "2", Name: "two"})
	select {
	case <-next:
		t.Error("setting an equal object counts as a change")
	default:
	}
	model.Set(Object{UID: "2", Name: "two", Status: "Ready"})
	model.Remove("1")
	model.Remove("never seen")
	<-next
	second := model.Since(first.Revision)
	if got := names(second); second.Whole || !slices.Equal(got, []string{"two"}) || !slices.Equal(second.Removed, []types.UID{"1"}) {
		t.Errorf("the delta has %v and removes %v, whole %v", got, second.Removed, second.Whole)
	}
	model.Set(Object{UID: "1", Name: "one"})
	if back := model.Since(first.Revision); len(back.Removed) > 0 {
		t.Errorf("the delta removes %v, which exists again", back.Removed)
	}
}

// A reader that waits too long gets all objects again, because the model drops old removals.
func TestSinceForgets(t *testing.T) {
	model := NewModel()
	model.Set(Object{UID: "stays", Name: "stays"})
	early := model.Since(0).Revision
	for i := range 5 * keptRemovals {
		uid := types.UID(strconv.Itoa(i))
		model.Set(Object{UID: uid})
		model.Remove(uid)
	}
	if kept := len(model.history.removals); kept > 2*keptRemovals {
		t.Errorf("the model keeps %d removals", kept)
	}
	if late := model.Since(early); !late.Whole || !slices.Equal(names(late), []string{"stays"}) {
		t.Errorf("the delta has %v, whole %v", names(late), late.Whole)
	}
	if other := model.Since(1 << 40); !other.Whole {
		t.Error("a revision of another model was accepted")
	}
}
