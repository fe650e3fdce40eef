// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// sceneResources are the resources of the kinds in these tests.
var sceneResources = map[string]string{"Frigate": "frigates", "Secret": "secrets", "Namespace": "namespaces", "ConfigMap": "configmaps"}

// sceneObject is an object of a scenario.
func sceneObject(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	if kind == "Frigate" {
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "sea.example.com", Version: "v1", Kind: kind})
	}
	if object.SetName(name); kind != "Namespace" {
		object.SetNamespace("default")
	}
	return object
}

func sceneState(objects ...*unstructured.Unstructured) world.State {
	state := world.State{}
	for _, one := range objects {
		state[sceneKey(one)] = one
	}
	return state
}

func sceneKey(one *unstructured.Unstructured) world.Key {
	return world.Key{Group: one.GroupVersionKind().Group, Resource: sceneResources[one.GetKind()], Kind: one.GetKind(), Namespace: one.GetNamespace(), Name: one.GetName()}
}

// sceneOf is a campaign with these states at the ends of its steps.
func sceneOf(subjects, others []*unstructured.Unstructured, states ...world.State) *campaign {
	c := &campaign{o: Options{Subjects: subjects, Others: others}, mask: compare.NewMask(), before: world.State{}}
	for _, state := range states {
		c.o.Steps = append(c.o.Steps, Step{Name: "step"})
		c.reference = append(c.reference, &stage{state: state})
	}
	return c
}

// TestOrdersFollowTheScenario has scenarios that do not bring all their objects in their first step.
func TestOrdersFollowTheScenario(t *testing.T) {
	victory, surprise, crew, port := sceneObject("Frigate", "victory"), sceneObject("Frigate", "surprise"), sceneObject("Secret", "crew"), sceneObject("Namespace", "port")
	subjects := []*unstructured.Unstructured{victory, surprise}
	others := []*unstructured.Unstructured{port, crew}
	for name, test := range map[string]struct {
		states []world.State
		want   []string
	}{
		"one after the other":                  {[]world.State{sceneState(victory), sceneState(victory, surprise), {}}, []string{"1 long-names", "1 namesakes", "1 recreate", "1 twins"}},
		"what they refer to in the same step":  {[]world.State{sceneState(victory, crew), sceneState(victory, crew)}, []string{"0 late", "1 long-names", "1 namesakes", "1 recreate", "1 twins"}},
		"what they refer to in an earlier one": {[]world.State{sceneState(crew), sceneState(crew, victory), sceneState(crew, victory)}, []string{"2 long-names", "2 namesakes", "2 recreate", "2 twins"}},
		"and in a later one":                   {[]world.State{sceneState(victory), sceneState(victory, crew)}, []string{"1 long-names", "1 namesakes", "1 recreate", "1 twins"}},
		"one step":                             {[]world.State{sceneState(victory, crew)}, []string{"0 late"}},
		"a namespace":                          {[]world.State{sceneState(victory, port), {}}, []string{"1 long-names", "1 namesakes", "1 recreate", "1 twins"}},
		"never a custom resource":              {[]world.State{sceneState(crew), {}}, nil},
	} {
		var got []string
		for _, p := range orderPlans(sceneOf(subjects, others, test.states...)) {
			if p.Variant != "operator-late" {
				got = append(got, summary(p))
			}
		}
		if slices.Sort(got); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// TestOrdersLeaveLaterStepsAlone has a scenario whose second step brings one more of each: they are not there at the end of the first.
func TestOrdersLeaveLaterStepsAlone(t *testing.T) {
	victory, surprise, crew, port, later := sceneObject("Frigate", "victory"), sceneObject("Frigate", "surprise"), sceneObject("Secret", "crew"), sceneObject("Namespace", "port"), sceneObject("Secret", "later")
	c := sceneOf([]*unstructured.Unstructured{victory, surprise}, []*unstructured.Unstructured{crew, port, later},
		sceneState(victory, crew, port), sceneState(victory, crew, port, surprise, later))
	var namesakes []*unstructured.Unstructured
	for _, one := range []*unstructured.Unstructured{crew, victory} {
		namesake := one.DeepCopy()
		namesake.SetNamespace("kube-public")
		namesakes = append(namesakes, namesake)
	}
	for variant, test := range map[string]struct {
		step         int
		there        []*unstructured.Unstructured
		acted, ended []*unstructured.Unstructured
	}{
		"recreate":  {1, []*unstructured.Unstructured{victory}, []*unstructured.Unstructured{victory}, []*unstructured.Unstructured{victory}},
		"twins":     {1, nil, []*unstructured.Unstructured{sceneObject("Frigate", "victory-twin")}, nil},
		"namesakes": {1, nil, namesakes, nil},
		"late":      {0, nil, []*unstructured.Unstructured{port, victory}, []*unstructured.Unstructured{port, victory, crew}},
	} {
		objects := fake.NewClientBuilder()
		for _, one := range test.there {
			objects.WithObjects(one.DeepCopy())
		}
		r := &run{campaign: c, objects: objects.Build()}
		d, err := reorder(r, &Plan{Family: "order", Variant: variant, Step: test.step})
		if err != nil {
			t.Fatal(err)
		}
		all := []*unstructured.Unstructured{victory, surprise, sceneObject("Frigate", "victory-twin"), sceneObject("Frigate", "surprise-twin"), crew, port, later}
		all = append(all, namesakes...)
		expect := func(when string, want []*unstructured.Unstructured) {
			t.Helper()
			for _, one := range all {
				_, err := r.live(t.Context(), one)
				if should := slices.ContainsFunc(want, func(other *unstructured.Unstructured) bool { return sceneKey(other) == sceneKey(one) }); (err == nil) != should {
					t.Errorf("%s, %s: %s is there: %v", variant, when, sceneKey(one), err == nil)
				}
			}
		}
		if err := d.act(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("disturbed", test.acted)
		if d.heal != nil {
			if err := d.heal(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		expect("healed", test.ended)
	}
}

// TestOperatorsThatWaitForWhatComesLate is about an operator that looks again after a minute, whatever it found.
func TestOperatorsThatWaitForWhatComesLate(t *testing.T) {
	for about, test := range map[string]struct {
		ready       string
		undisturbed time.Duration // the timer
		now         time.Duration
		nudged      bool
	}{
		"it always does, and waits":            {"False", time.Minute, time.Minute, true},
		"it always does, and says all is well": {"True", time.Minute, time.Minute, false},
		"only now":                             {"True", 0, time.Minute, true},
		"it has no timer":                      {"True", 0, 0, true}, // but backs off
	} {
		victory, crew := sceneObject("Frigate", "victory"), sceneObject("Secret", "crew")
		c := sceneOf([]*unstructured.Unstructured{victory}, []*unstructured.Unstructured{crew}, sceneState(victory, crew))
		c.o.Settling = DefaultSettling
		c.reference[0].rested.timers = map[string]time.Duration{"frigate": test.undisturbed}
		live := victory.DeepCopy()
		live.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": test.ready}}}
		a := following(reconciled(lens.Reconcile{ID: 1, RequeueAfter: test.now})...)
		r := &run{campaign: c, objects: fake.NewClientBuilder().WithObjects(live).Build(), world: world.Of(sceneState(live)), activity: a}
		d, err := reorder(r, &Plan{Family: "order", Variant: "late"})
		if err != nil {
			t.Fatal(err)
		}
		before, err := r.live(t.Context(), victory)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.nudge(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := r.live(t.Context(), victory)
		if err != nil {
			t.Fatal(err)
		}
		if nudged := after.GetResourceVersion() != before.GetResourceVersion(); nudged != test.nudged {
			t.Errorf("%s: nudged: %v", about, nudged)
		}
	}
}

// An operator that keeps a Secret when its custom resource is deleted also keeps the one of a second custom resource.
func TestObjectsThatAreKeptAlike(t *testing.T) {
	c := sailing()
	c.reference[2].shape = compare.Shape{Objects: map[string]compare.Fields{"Secret default/victory-tls": {}}, Counts: map[string]int{"PersistentVolume pvc-*": 1}}
	for object, want := range map[string]bool{
		"Secret default/victory-twin-tls": true, "Secret kube-public/victory-tls": true, "ConfigMap kube-public/victory-tls": false, "Secret default/victory-twin-key": false,
		"PersistentVolume pvc-*": true,
	} {
		if got := c.keepsAlike(object); got != want {
			t.Errorf("%s: got %v", object, got)
		}
	}
}

// TestOnlyCustomResourcesAreDeletedInTheForeground is about a step that deletes them and a Secret to which they refer.
func TestOnlyCustomResourcesAreDeletedInTheForeground(t *testing.T) {
	victory, crew := sceneObject("Frigate", "victory"), sceneObject("Secret", "crew")
	how := map[string]metav1.DeletionPropagation{}
	objects := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(victory, crew).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			all := client.DeleteOptions{}
			how[object.GetName()] = *all.ApplyOptions(options).PropagationPolicy
			return nil
		},
	}).Build()
	deletes := deletesInForeground{objects, []*unstructured.Unstructured{victory}}
	for _, one := range []*unstructured.Unstructured{victory, crew} {
		if err := deletes.Delete(t.Context(), one.DeepCopy(), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatal(err)
		}
	}
	if how["victory"] != metav1.DeletePropagationForeground || how["crew"] != metav1.DeletePropagationBackground {
		t.Errorf("they are deleted in these ways: %v", how)
	}
}
