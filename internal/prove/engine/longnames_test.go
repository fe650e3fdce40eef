// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/prove/world"
)

func TestLongNames(t *testing.T) {
	c := sailing()
	all, like := c.longNamed(0)
	if len(all) != 2 || all[0].GetName() == all[1].GetName() {
		t.Fatalf("got %v", all)
	}
	for _, one := range all {
		name := one.GetName()
		if len(name) != longest || name[:longest-1] != all[0].GetName()[:longest-1] || !strings.HasPrefix(name, "victory-long") || like[one].GetName() != "victory" {
			t.Errorf("%q is like %q", name, like[one].GetName())
		}
		if short := longSuffix.ReplaceAllLiteralString(name+"-data", ""); short != "victory-data" {
			t.Errorf("without what was added it is %q", short)
		}
	}
}

// TestLongNamesThatAreNotReported is about an operator that cannot create an object because its name is too long or already in use.
func TestLongNamesThatAreNotReported(t *testing.T) {
	named := func(name string) *unstructured.Unstructured {
		one := sceneObject("Frigate", name)
		one.SetUID(types.UID("u-" + name))
		one.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		return one
	}
	of := func(owner *unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
		one := sceneObject(kind, name)
		one.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Frigate", UID: owner.GetUID(), Controller: ptr.To(true)}})
		return one
	}
	short, long := named("victory"), named("victory-long-long-1")
	waits, mute := named("victory-long-long-1"), named("victory-long-long-1")
	waits.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}
	delete(mute.Object, "status")
	fails := rested{stuck: true, failsAt: map[string]string{"default/victory-long-long-1": "the name is too long"}}
	orders, shared := of(short, "ConfigMap", "victory-orders"), of(short, "Secret", "navy")
	for about, test := range map[string]struct {
		live    *unstructured.Unstructured
		made    []*unstructured.Unstructured
		refused map[Moment]string
		over    rested
		falsely bool
		silent  bool
	}{
		"all is there":                       {long, []*unstructured.Unstructured{of(long, "ConfigMap", "victory-long-long-1-orders")}, nil, rested{}, false, false},
		"an object is missing":               {long, nil, nil, rested{}, true, false},
		"an object is missing, and it waits": {waits, nil, nil, fails, false, false},
		"an object is refused":               {long, []*unstructured.Unstructured{of(long, "ConfigMap", "victory-long-long-1-orders")}, map[Moment]string{{}: "too long"}, rested{}, true, false},
		"it says nothing":                    {mute, nil, nil, fails, false, true},
		"it says nothing, and nothing fails": {mute, nil, nil, rested{}, false, false},
	} {
		state := world.State{}
		for _, one := range append([]*unstructured.Unstructured{short, test.live, orders, shared}, test.made...) {
			state[world.Key{Kind: one.GetKind(), Namespace: one.GetNamespace(), Name: one.GetName()}] = one
		}
		if got := falselyReady(0, state, test.live, short, test.refused); (got != nil) != test.falsely {
			t.Errorf("%s: it is ready, and got %+v", about, got)
		}
		if got := silent(0, test.live, test.over); (got != nil) != test.silent {
			t.Errorf("%s: it is silent, and got %+v", about, got)
		}
	}
}
