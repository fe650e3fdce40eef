// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

// TestObjectsThatAreReplaced is about an operator that deletes and creates an object again, whose end is as before.
func TestObjectsThatAreReplaced(t *testing.T) {
	set := world.Key{Group: "apps", Resource: "statefulsets", Kind: "StatefulSet", Namespace: "default", Name: "victory"}
	claim := world.Key{Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespace: "default", Name: "data"}
	orders := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "orders"}
	job := world.Key{Group: "batch", Resource: "jobs", Kind: "Job", Namespace: "default", Name: "launch"}
	sail := world.Key{Group: "sea.example.com", Resource: "sails", Kind: "Sail", Namespace: "default", Name: "main"}
	object := func(uid, owner types.UID) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetUID(uid)
		if owner != "" {
			o.SetOwnerReferences([]metav1.OwnerReference{{UID: owner}})
		}
		return o
	}
	target := object("u-set", "")
	for about, test := range map[string]struct {
		key   world.Key
		owner types.UID
		again types.UID
		may   mayReplace
		want  bool
	}{
		"it stays":                          {set, "", "u-set", nothing, false},
		"it is gone":                        {set, "", "", nothing, false}, // which is another verdict
		"a workload":                        {set, "", "u-2", nothing, true},
		"a Job is tried again":              {job, "", "u-2", nothing, false},
		"a claim, as pods fail":             {claim, "", "u-2", whatFails("never-ready", nil), true},
		"a claim, as its node is lost":      {claim, "", "u-2", whatFails(nodeLost, nil), false},
		"a workload, as its node is lost":   {set, "", "u-2", whatFails(nodeLost, nil), true},
		"what stands for a pod that fails":  {sail, "", "u-2", whatFails("crash-loop", nil), false},
		"what a pod owns":                   {sail, "u-pod", "u-2", whatFails("delete", world.State{{Resource: "pods", Kind: "Pod"}: object("u-pod", ""), set: object("u-sails", "u-pod")}), false},
		"what nobody has touched":           {sail, "", "u-2", nothing, true},
		"what somebody has changed":         {set, "", "u-2", onlyWith(target, world.State{set: target}), false},
		"what that owns":                    {sail, "u-set", "u-2", onlyWith(target, world.State{set: target, sail: object("u-sails", "u-set")}), false},
		"what may be made of its content":   {orders, "", "u-2", onlyWith(target, world.State{set: target}), false},
		"another object than that":          {claim, "", "u-2", onlyWith(target, world.State{set: target}), true},
		"content, although nothing changed": {orders, "", "u-2", nothing, true},
	} {
		t.Run(about, func(t *testing.T) {
			before, after := world.State{test.key: object(types.UID("u-"+test.key.Resource), test.owner)}, world.State{}
			if test.key == set {
				before[set] = target
			}
			if test.again != "" {
				after[test.key] = object(test.again, test.owner)
			}
			wrong := sailing().replaced(1, before, after, test.may)
			if got := len(wrong) == 1 && wrong[0].Verdict == "counts" && wrong[0].Object == test.key.String(); got != test.want {
				t.Errorf("got %+v", wrong)
			}
		})
	}
}

// TestWhatIsTakenFromOthers is about an operator that deletes objects of a custom resource while only another one is created and deleted.
func TestWhatIsTakenFromOthers(t *testing.T) {
	c := sailing()
	victory := frigate()
	victory.SetUID("u-victory")
	subject, _ := find(c.reference[1].state, victory)
	object := func(kind, name string, owner types.UID) *unstructured.Unstructured {
		one := sceneObject(kind, name)
		one.SetUID(types.UID("u-" + name))
		if owner != "" {
			one.SetOwnerReferences([]metav1.OwnerReference{{UID: owner}})
		}
		return one
	}
	random := object("Pod", "victory-x7f2k", "u-victory")
	random.SetGenerateName("victory-")
	pods, maps := lens.Resource{Resource: "pods"}, lens.Resource{Resource: "configmaps"}
	of := func(verb string, resource lens.Resource, uid string) *lens.Event {
		return request(lens.Request{Verb: verb, Resource: resource, Status: 200, Object: &lens.Object{UID: uid}})
	}
	eviction := of("create", lens.Resource{Resource: "pods", Subresource: "eviction"}, "u-victory-0")
	eviction.Request.Status = 201
	collection := request(lens.Request{Verb: "deletecollection", Resource: pods, Status: 200, Deleted: []string{"u-other", "u-victory-0"}})
	refused := of("delete", maps, "u-orders")
	refused.Request.Status = 403
	mine := object("ConfigMap", "cache", "")
	c.own, c.mask.Objects = map[string]bool{"ConfigMap default/cache": true}, map[string]bool{"Pod default/victory-*": true}
	for about, test := range map[string]struct {
		object *unstructured.Unstructured
		event  *lens.Event
		want   bool
	}{
		"an object":                             {object("ConfigMap", "orders", ""), of("delete", maps, "u-orders"), true},
		"a pod":                                 {object("Pod", "victory-0", "u-victory"), of("delete", pods, "u-victory-0"), true},
		"pods of all":                           {object("Pod", "victory-0", "u-victory"), collection, true},
		"an eviction":                           {object("Pod", "victory-0", "u-victory"), eviction, true},
		"a pod of the operator as a whole":      {object("Pod", "victory-0", ""), of("delete", pods, "u-victory-0"), false},
		"something that it makes for itself":    {mine, of("delete", maps, "u-cache"), false},
		"a pod that is not always there":        {random, of("delete", pods, "u-victory-x7f2k"), false},
		"a request that the API server refuses": {object("ConfigMap", "orders", ""), refused, false},
		"what is created while it looks":        {object("ConfigMap", "orders", ""), of("delete", maps, "u-new"), false},
		"a change":                              {object("ConfigMap", "orders", ""), of("patch", maps, "u-orders"), false},
	} {
		resource := map[string]string{"Pod": "pods", "ConfigMap": "configmaps"}[test.object.GetKind()]
		key := world.Key{Resource: resource, Kind: test.object.GetKind(), Namespace: "default", Name: test.object.GetName()}
		if taken := c.takenFrom(world.State{subject: victory, key: test.object}, []*lens.Event{test.event}); len(taken) == 1 != test.want {
			t.Errorf("%s: got %+v", about, taken)
		}
	}
}
