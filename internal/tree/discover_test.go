// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// watched records which kinds are watched. It fails the test if two watches of a kind overlap.
type watched struct {
	t       *testing.T
	mutex   sync.Mutex
	running map[string]bool
	begun   []string
}

func (w *watched) watch(ctx context.Context, k definedKind) {
	name := fmt.Sprintf("%s/%d", k.kind.Kind, k.generation)
	w.mutex.Lock()
	if w.running[k.kind.Kind] {
		w.t.Errorf("the watch of %s begins before the previous one has ended", name)
	}
	w.running[k.kind.Kind] = true
	w.begun = append(w.begun, name)
	w.mutex.Unlock()
	<-ctx.Done()
	w.mutex.Lock()
	w.running[k.kind.Kind] = false
	w.mutex.Unlock()
}

func kind(name string, definition types.UID, generation int64) definedKind {
	return definedKind{kind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: name}, definition: definition, generation: generation}
}

func ending(k definedKind) definedKind {
	k.ending = true
	return k
}

func TestKindsComeAndGo(t *testing.T) {
	frigate, ferry := kind("Frigate", "a", 1), kind("Ferry", "b", 1)
	for name, test := range map[string]struct {
		steps [][]definedKind
		begun []string // watches that the steps begin
		left  []string // kinds whose objects remain
	}{
		"one more":       {[][]definedKind{{frigate}, {frigate, ferry}}, []string{"Frigate/1", "Ferry/1"}, []string{"Ferry", "Frigate"}},
		"one is deleted": {[][]definedKind{{frigate, ferry}, {frigate}}, []string{"Ferry/1", "Frigate/1"}, []string{"Frigate"}},
		"one is ending":  {[][]definedKind{{ferry}, {ending(kind("Ferry", "b", 2))}}, []string{"Ferry/1"}, []string{"Ferry"}},
		"it has ended":   {[][]definedKind{{ferry}, {ending(kind("Ferry", "b", 2))}, {}}, []string{"Ferry/1"}, nil},
		"another schema": {[][]definedKind{{ferry}, {kind("Ferry", "b", 2)}}, []string{"Ferry/1", "Ferry/2"}, []string{"Ferry"}},
		"recreated":      {[][]definedKind{{ferry}, {kind("Ferry", "c", 1)}}, []string{"Ferry/1", "Ferry/1"}, nil},
		"going already":  {[][]definedKind{{ending(ferry)}}, nil, []string{"Ferry"}},
	} {
		t.Run(name, func(t *testing.T) {
			m, seen := NewModel(), &watched{t: t, running: map[string]bool{}}
			watches := kindWatches{model: m, watch: seen.watch}
			for i, step := range test.steps {
				if i == 0 {
					for _, k := range step {
						m.Set(Object{UID: types.UID(k.kind.Kind), Group: "g", Kind: k.kind.Kind, Name: "one"})
					}
				}
				if i == 1 && name == "one more" {
					m.Set(Object{UID: "Ferry", Group: "g", Kind: "Ferry", Name: "one"})
				}
				watches.update(t.Context(), step)
			}
			watches.end()
			slices.Sort(seen.begun)
			if slices.Sort(test.begun); !slices.Equal(seen.begun, test.begun) {
				t.Errorf("watched %q, want %q", seen.begun, test.begun)
			}
			var left []string
			for _, o := range m.Since(0).Objects {
				left = append(left, o.Kind)
			}
			if slices.Sort(left); strings.Join(left, " ") != strings.Join(test.left, " ") {
				t.Errorf("objects of %q remain, want %q", left, test.left)
			}
		})
	}
}

// The next watch removes objects that an earlier watch left behind, once it has listed everything.
func TestAWatchSweeps(t *testing.T) {
	m := NewModel()
	for _, o := range []Object{
		{UID: "gone", Group: "g", Kind: "Ferry"}, {UID: "stays", Group: "g", Kind: "Ferry"},
		{UID: "other", Group: "g", Kind: "Frigate"}, {UID: "apps", Group: "apps", Kind: "Ferry"},
	} {
		m.Set(o)
	}
	f := follower{model: m, seen: map[types.UID]bool{}, sources: Sources{Fleet: map[schema.GroupVersionKind]Columns{{Group: "g", Version: "v1", Kind: "Ferry"}: nil}}}
	f.set(Object{UID: "stays", Group: "g", Kind: "Ferry", Status: "Ready"})
	f.set(Object{UID: "new", Group: "g", Kind: "Ferry"})
	f.sweep()
	var left []string
	for _, o := range m.Since(0).Objects {
		left = append(left, string(o.UID))
	}
	if slices.Sort(left); strings.Join(left, " ") != "apps new other stays" {
		t.Errorf("%q remain", left)
	}
}

// The server may serve a kind a moment after its definition is established.
func TestAKindThatIsNotServedYet(t *testing.T) {
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "ship.example.com", Kind: "Frigate"}}
	other := errors.New("no such server")
	for name, test := range map[string]struct {
		answers []error
		want    error
	}{
		"comes":   {[]error{missing, fmt.Errorf("watching: %w", missing), nil}, nil},
		"at once": {[]error{nil}, nil},
		"fails":   {[]error{missing, other}, other},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			err := onceServed(t.Context(), func(context.Context) error {
				asked++
				return test.answers[asked-1]
			})
			if !errors.Is(err, test.want) || asked != len(test.answers) {
				t.Errorf("tried %d times: %v", asked, err)
			}
		})
	}
}
