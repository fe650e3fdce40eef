// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/opdock/opdock/internal/prove/world"
)

// read reads an object as clusters have it.
func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	return &object
}

func TestSet(t *testing.T) {
	for name, test := range map[string]struct {
		path []string
		to   any
		want string
	}{
		"a field":                {[]string{"a", "b"}, "y", `{"a":{"b":"y"},"l":[{"x":1},2]}`},
		"a new one":              {[]string{"a", "c", "d"}, int64(1), `{"a":{"b":"x","c":{"d":1}},"l":[{"x":1},2]}`},
		"a field that goes":      {[]string{"a", "b"}, nil, `{"a":{},"l":[{"x":1},2]}`},
		"a field of an element":  {[]string{"l", "0", "x"}, int64(5), `{"a":{"b":"x"},"l":[{"x":5},2]}`},
		"an element":             {[]string{"l", "1"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},5]}`},
		"an element that is not": {[]string{"l", "2"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
		"no index":               {[]string{"l", "x"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
		"beyond a leaf":          {[]string{"a", "b", "c"}, int64(5), `{"a":{"b":"x"},"l":[{"x":1},2]}`},
	} {
		object := map[string]any{"a": map[string]any{"b": "x"}, "l": []any{map[string]any{"x": int64(1)}, int64(2)}}
		set(object, test.path, test.to)
		got, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}

func TestChildrenAreWhatTheOperatorWrote(t *testing.T) {
	c := sailing()
	var names []string
	for _, one := range c.children(1) {
		names = append(names, one.key.String())
	}
	// Neither the pod, which a controller of the cluster made, nor the custom resource.
	if want := []string{"Deployment default/victory"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	for key, object := range c.reference[1].state {
		c.before[key] = object
	}
	if left := c.children(1); len(left) > 0 {
		t.Errorf("%s was there before the scenario", left[0].key)
	}
}

// An operator that only creates and deletes pods does not restore what another user changes in one.
func TestPodsThatAreNotRepaired(t *testing.T) {
	key := world.Key{Resource: "pods", Kind: "Pod", Namespace: "default", Name: "victory-1"}
	at := func(verb string) write {
		return write{Moment: Moment{Verb: verb, Resource: "pods", Namespace: "default", Name: "victory-1", Nth: 1}}
	}
	for name, test := range map[string]struct {
		writes []write
		want   bool
	}{
		"it creates and deletes them": {[]write{at("create"), at("delete")}, false},
		"it changes them":             {[]write{at("create"), at("patch")}, true},
		"it applies them":             {[]write{at("apply")}, true},
	} {
		c, pod := sailing(), podOf("")
		pod.SetLabels(map[string]string{"app": "victory"})
		for _, s := range c.reference[:2] {
			s.state, s.writes = world.State{key: pod}, test.writes
		}
		var variants []string
		for _, p := range driftPlans(c) {
			if p.Object == key.String() {
				variants = append(variants, p.Variant)
			}
		}
		if relabels := slices.Contains(variants, "relabel"); relabels != test.want || !slices.Contains(variants, "delete") {
			t.Errorf("%s: it is changed with %q", name, variants)
		}
	}
}

// A custom resource whose kind has no namespaces has a status as well.
func TestStatusIsWiped(t *testing.T) {
	for _, namespace := range []string{"default", ""} {
		c, live := sailing(), frigate()
		live.SetNamespace(namespace)
		c.o.Subjects = []*unstructured.Unstructured{live}
		state := world.State{{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: namespace, Name: "victory"}: live}
		c.reference[1].state = state
		wipes := slices.DeleteFunc(driftPlans(c), func(p *Plan) bool { return p.Variant != "status" })
		if len(wipes) != 1 {
			t.Fatalf("namespace %q: %d plans, want 1", namespace, len(wipes))
		}
		if _, err := drift(&run{campaign: c, world: world.Of(state)}, wipes[0]); err != nil {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
}

// Plans that need all objects begin before a custom resource is deleted, however the scenario ends.
func TestStepWithMostObjects(t *testing.T) {
	for about, test := range map[string]struct {
		steps []Step
		want  int
	}{
		"everything is deleted":              {[]Step{{}, {Subjects: 1}, {Subjects: 1, Deletes: true, Ends: true}}, 2},
		"the custom resource is, and others": {[]Step{{}, {Subjects: 1, Deletes: true}, {Ends: true}}, 1},
		"one custom resource is":             {[]Step{{}, {Subjects: 2, Deletes: true}, {Subjects: 1}, {Subjects: 1, Deletes: true, Ends: true}}, 1},
		"one is before the next comes":       {[]Step{{}, {Subjects: 1, Deletes: true}, {}, {Subjects: 1}, {Subjects: 1, Deletes: true, Ends: true}}, 4},
		"one is before more come":            {[]Step{{}, {Subjects: 1, Deletes: true}, {}, {Subjects: 2}}, 3},
		"one is before fewer come":           {[]Step{{}, {Subjects: 2, Deletes: true}, {}, {Subjects: 1}}, 1},
		"nothing is":                         {[]Step{{}, {Subjects: 1}, {Subjects: 1}}, 2},
	} {
		c := sailing()
		if c.o.Steps = test.steps; c.fullest() != test.want {
			t.Errorf("%s: got %d, want %d", about, c.fullest(), test.want)
		}
	}
}

// A finalizer holds up the deletion of what goes with a custom resource, also if the scenario deletes other objects later.
func TestDeletionsThatAreHeldUp(t *testing.T) {
	held := func(c *campaign) (objects []string) {
		for _, p := range driftPlans(c) {
			if p.Variant == "finalizer" {
				objects = append(objects, p.Object)
			}
		}
		return objects
	}
	c := sailing()
	c.o.Steps[2] = Step{Name: "delete", Deletes: true}
	expectLines(t, held(c), "Deployment default/victory")
	c.reference[2].state = c.reference[1].state
	expectLines(t, held(c)) // this step does not delete it
}

// TestObjectsThatTheOperatorOnlyChanges has objects of others: only the fields that the operator has set are its own.
func TestObjectsThatTheOperatorOnlyChanges(t *testing.T) {
	for about, test := range map[string]struct {
		verb     string
		change   func(c *campaign, object *unstructured.Unstructured)
		variants []string
	}{
		"the operator applies it": {"apply", nil, []string{"delete", "edit", "finalizer", "orphan", "relabel", "rollout-restart"}},
		"the operator creates it": {"create", nil, []string{"delete", "edit", "finalizer", "orphan", "relabel", "rollout-restart"}},
		"the operator patches it": {"patch", nil, []string{"edit", "finalizer"}},
		"the scenario brings it":  {"apply", func(c *campaign, object *unstructured.Unstructured) { c.o.Others = append(c.o.Others, object) }, []string{"edit", "finalizer"}},
		"a controller of Kubernetes does": {"apply", func(_ *campaign, object *unstructured.Unstructured) {
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Controller: new(true)}})
		}, []string{"edit", "finalizer"}},
	} {
		c := sailing()
		for _, step := range c.reference[:2] {
			step.writes[0].Verb = test.verb
		}
		for key, object := range c.reference[1].state {
			if key.Kind == "Deployment" && test.change != nil {
				test.change(c, object)
			}
		}
		var variants []string
		for _, p := range driftPlans(c) {
			if p.Object == "Deployment default/victory" {
				variants = append(variants, p.Variant)
			}
		}
		slices.Sort(variants)
		if !slices.Equal(variants, test.variants) {
			t.Errorf("%s: got %q, want %q", about, variants, test.variants)
		}
	}
}

// TestFinishedWorkIsLeftAlone is about Jobs, pods and custom resources that an operator runs once.
func TestFinishedWorkIsLeftAlone(t *testing.T) {
	for about, test := range map[string]struct {
		object  string
		planned bool
	}{
		"a complete Job":                  {"{apiVersion: batch/v1, kind: Job, status: {completionTime: \"2026-11-18T12:00:00Z\"}}", false},
		"a failed Job":                    {"{apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: \"True\"}]}}", false},
		"a Job that runs":                 {"{apiVersion: batch/v1, kind: Job, status: {active: 1}}", true},
		"a succeeded pod":                 {"{apiVersion: v1, kind: Pod, status: {phase: Succeeded}}", false},
		"a pod that runs":                 {"{apiVersion: v1, kind: Pod, status: {phase: Running}}", true},
		"a voyage with a time of its end": {"{apiVersion: sea.example.com/v1, kind: Voyage, status: {completionTime: \"2026-11-18T12:00:00Z\"}}", false},
		"a voyage with a last phase":      {"{apiVersion: sea.example.com/v1, kind: Voyage, status: {phase: Successful}}", false},
		"a complete voyage":               {"{apiVersion: sea.example.com/v1, kind: Voyage, status: {conditions: [{type: Succeeded, status: \"True\"}]}}", false},
		"a voyage that is under way":      {"{apiVersion: sea.example.com/v1, kind: Voyage, status: {phase: Running, conditions: [{type: Succeeded, status: Unknown}]}}", true},
		"a Deployment":                    {"{apiVersion: apps/v1, kind: Deployment, status: {phase: Succeeded}}", true},
	} {
		object := read(t, test.object)
		object.SetNamespace("default")
		object.SetName("once")
		c := sailing()
		resource := map[string]string{"Job": "jobs", "Pod": "pods", "Voyage": "voyages", "Deployment": "deployments"}[object.GetKind()]
		key := world.Key{Group: object.GroupVersionKind().Group, Resource: resource, Kind: object.GetKind(), Namespace: "default", Name: "once"}
		c.reference[1].state = world.State{key: object}
		c.reference[1].writes = []write{{Moment: Moment{Verb: "create", Group: key.Group, Resource: resource, Namespace: "default", Name: "once"}}}
		planned := slices.ContainsFunc(driftPlans(c), func(p *Plan) bool { return p.Object == key.String() })
		if planned != test.planned {
			t.Errorf("%s: it is disturbed: %v", about, planned)
		}
	}
}

// TestDeletionsThatKubernetesHoldsUp is about a claim that a pod uses. The operator cannot create it again until it is gone.
func TestDeletionsThatKubernetesHoldsUp(t *testing.T) {
	const protected, own = "kubernetes.io/pvc-protection", "sea.example.com/cargo"
	for about, test := range map[string]struct {
		finalizers []string // of the claim
		after      func(r *run, claim *unstructured.Unstructured) error
		unjudged   bool
	}{
		"it is in use":                    {[]string{protected}, nil, true},
		"it also has one of the operator": {[]string{own, protected}, nil, true},
		"it only has one of the operator": {[]string{own}, nil, false},
		"it has none":                     {nil, nil, false},
		"it is not in use":                {[]string{protected}, func(r *run, claim *unstructured.Unstructured) error { return unprotect(t, r, claim) }, false},
		"the operator has created it again": {[]string{protected}, func(r *run, claim *unstructured.Unstructured) error {
			return errors.Join(unprotect(t, r, claim), again(t, r, claim))
		}, false},
	} {
		claim := read(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: cargo, namespace: default, uid: u1}}")
		claim.SetFinalizers(test.finalizers)
		key := world.Key{Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespace: "default", Name: "cargo"}
		r := &run{campaign: sailing(), objects: fake.NewClientBuilder().WithObjects(claim.DeepCopy()).Build(), world: world.Of(world.State{key: claim})}
		d, err := drift(r, &Plan{Family: "drift", Variant: "delete", Object: key.String()})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.act(t.Context()); err != nil {
			t.Fatal(err)
		}
		if test.after != nil {
			if err := test.after(r, claim); err != nil {
				t.Fatal(err)
			}
		}
		if why, err := d.futile(t.Context()); err != nil || (why != "") != test.unjudged {
			t.Errorf("%s: got %q, %v", about, why, err)
		}
	}
}

// unprotect ends a deletion as the controller of claims does.
func unprotect(t *testing.T, r *run, claim *unstructured.Unstructured) error {
	t.Helper()
	return r.change(t.Context(), claim, func(live *unstructured.Unstructured) { live.SetFinalizers(nil) })
}

// again creates an object of the same name.
func again(t *testing.T, r *run, claim *unstructured.Unstructured) error {
	t.Helper()
	other := claim.DeepCopy()
	other.SetUID("u2")
	return r.objects.Create(t.Context(), other)
}

// An operator with many objects is not only confronted with deletions in a short campaign.
func TestDriftsTakeTurns(t *testing.T) {
	c := sailing()
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		configMap := read(t, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: "+name+", labels: {app: a}, ownerReferences: [{uid: u}]}}")
		c.reference[1].state[world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: name}] = configMap
		c.reference[1].writes = append(c.reference[1].writes, write{Moment: Moment{Verb: "create", Resource: "configmaps", Namespace: "default", Name: name, Nth: 1}})
	}
	c.o.Families = []string{"drift"}
	seen, kinds := map[string]bool{}, map[string]bool{}
	for _, p := range c.plans()[:11] {
		seen[p.Variant] = true
		if p.Variant == "delete" {
			kinds[strings.Fields(p.Object)[0]] = true
		}
	}
	for _, variant := range []string{"delete", "status", "finalizer", "held", "orphan", "relabel", "rollout-restart"} {
		if !seen[variant] {
			t.Errorf("%s is not among the first", variant)
		}
	}
	if !kinds["ConfigMap"] || !kinds["Deployment"] {
		t.Errorf("only %v are deleted first", kinds)
	}
}

// What others disturb is not done where an operator may have refused that a change was taken back.
func TestDisturbancesComeBeforeAChangeIsTakenBack(t *testing.T) {
	for about, test := range map[string]struct {
		guns []int64 // after each step but the last, which deletes everything; 0 means that there is no custom resource
		want int
	}{
		"it is taken back":            {[]int64{100, 104, 100}, 2},
		"it is not":                   {[]int64{100, 104, 108}, 3},
		"twice":                       {[]int64{100, 104, 108, 104, 100}, 3},
		"nothing changes":             {[]int64{100, 104, 104}, 3},
		"it is deleted and recreated": {[]int64{100, 0, 100}, 3},
	} {
		c := sailing()
		c.o.Steps, c.reference = nil, nil
		for _, guns := range test.guns {
			state := world.State{}
			if guns > 0 {
				live := frigate()
				live.Object["spec"] = map[string]any{"guns": guns}
				state[world.Key{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}] = live
			}
			c.o.Steps, c.reference = append(c.o.Steps, Step{Subjects: 1}), append(c.reference, &stage{state: state})
		}
		c.o.Steps, c.reference = append(c.o.Steps, Step{Subjects: 1, Deletes: true, Ends: true}), append(c.reference, &stage{})
		if got := c.disturbedStep(); got != test.want {
			t.Errorf("%s: got %d, want %d", about, got, test.want)
		}
	}
}
