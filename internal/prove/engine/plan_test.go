// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/values"
	"github.com/opdock/opdock/internal/prove/world"
)

// frigate is the custom resource of these tests.
func frigate() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Frigate", "metadata": map[string]any{"name": "victory", "namespace": "default"},
	}}
}

// sailing is a campaign that has learned what an operator does undisturbed: it writes a Deployment and two statuses when its
// custom resource is created, and the Deployment again when it is changed.
func sailing() *campaign {
	deployment := Moment{Verb: "apply", Group: "apps", Resource: "deployments", Namespace: "default", Name: "victory", Nth: 1}
	status := Moment{Verb: "patch", Group: "sea.example.com", Resource: "frigates", Subresource: "status", Namespace: "default", Name: "victory", Nth: 1}
	again := status
	again.Nth = 2
	state := world.State{
		{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "default", Name: "victory"}:      deployed(),
		{Resource: "pods", Kind: "Pod", Namespace: "default", Name: "victory-1"}:                                 podOf("ReplicaSet"),
		{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}: frigate(),
	}
	return &campaign{
		o: Options{
			Steps:    []Step{{Name: "create"}, {Name: "change"}, {Name: "delete", Ends: true}},
			Subjects: []*unstructured.Unstructured{frigate()},
			Families: []string{"crash", "lost", "refused", "stale", "unobserved", "slow", "drift", "pods", "order"},
		},
		mask: compare.NewMask(), restless: map[string]bool{}, before: world.State{},
		reference: []*stage{
			{state: state, writes: []write{{Moment: deployment}, {Moment: status}, {Moment: again}}, delivered: []lens.Resource{{Group: "apps", Resource: "deployments"}}},
			{state: state, writes: []write{{Moment: deployment}}, delivered: []lens.Resource{{Group: "sea.example.com", Resource: "frigates"}}},
			{state: world.State{}},
		},
	}
}

// podOf returns a pod that an object of that kind controls; none does if it is empty.
func podOf(controller string) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "victory-1", "namespace": "default"}}}
	if controller != "" {
		pod.SetOwnerReferences([]metav1.OwnerReference{{Kind: controller, Name: "victory", UID: "u2", Controller: new(true)}})
	}
	return pod
}

// deployed is a Deployment that the operator has made.
func deployed() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "victory", "namespace": "default", "labels": map[string]any{"app": "victory"},
			"ownerReferences": []any{map[string]any{"kind": "Frigate", "name": "victory", "uid": "u1"}},
			"managedFields": []any{map[string]any{
				"manager": "frigate-controller", "operation": "Apply", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}},
			}},
		},
		"spec": map[string]any{"replicas": int64(2), "paused": true},
	}}
}

func TestPlansHaveIDsThatStay(t *testing.T) {
	plan := func() *Plan {
		return &Plan{
			Family: "drift", Variant: "edit", Step: 2, At: &Moment{Verb: "patch", Resource: "pods", Nth: 1}, Resource: &lens.Resource{Resource: "pods"},
			Object: "Deployment default/victory", Path: []string{"spec", "replicas"}, Value: int64(3), Says: "It is changed",
		}
	}
	id := plan().ID()
	if rest, found := strings.CutPrefix(id, "drift-"); !found || len(rest) != 8 {
		t.Errorf("got %q, want the family and eight digits", id)
	}
	same := plan()
	same.Says, same.rank = "Other words for it", 7
	if same.ID() != id {
		t.Error("other words or another rank make another ID")
	}
	encoded, err := json.Marshal(plan())
	if err != nil {
		t.Fatal(err)
	}
	var read Plan
	if err := json.Unmarshal(encoded, &read); err != nil {
		t.Fatal(err)
	}
	if read.ID() != id {
		t.Errorf("a plan that was stored has the ID %s, want %s", read.ID(), id)
	}
	for name, change := range map[string]func(*Plan){
		"family":   func(p *Plan) { p.Family = "crash" },
		"variant":  func(p *Plan) { p.Variant = "delete" },
		"step":     func(p *Plan) { p.Step = 1 },
		"moment":   func(p *Plan) { p.At.Nth = 2 },
		"resource": func(p *Plan) { p.Resource.Group = "x" },
		"object":   func(p *Plan) { p.Object = "Deployment default/other" },
		"path":     func(p *Plan) { p.Path = []string{"spec"} },
		"value":    func(p *Plan) { p.Value = int64(4) },
	} {
		other := plan()
		if change(other); other.ID() == id {
			t.Errorf("another %s does not make another ID", name)
		}
	}
}

// TestIDsOfInputsStay is about values that are structures, whose fields have another order once they were stored.
func TestIDsOfInputsStay(t *testing.T) {
	plan := &Plan{Family: "input", Variant: "valid", Path: []string{"spec", "guns"}, Value: values.Change{Path: []string{"spec", "guns"}, Class: "Valid", Value: int64(3)}}
	encoded, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	var read Plan
	if err := json.Unmarshal(encoded, &read); err != nil {
		t.Fatal(err)
	}
	if read.ID() != plan.ID() {
		t.Errorf("a plan that was stored has the ID %s, want %s", read.ID(), plan.ID())
	}
}

func TestFamiliesTakeTurns(t *testing.T) {
	c := sailing()
	plans := c.plans()
	seen := map[string]bool{}
	for _, p := range plans {
		if seen[p.ID()] {
			t.Errorf("%s is planned twice: %s", p.ID(), p.Says)
		}
		seen[p.ID()] = true
	}
	// Each family has its turn before any has its second, and goes from the most telling to the least.
	var first []string
	for _, p := range plans[:len(c.o.Families)] {
		first = append(first, p.Family)
	}
	if !slices.Equal(first, c.o.Families) {
		t.Errorf("the first are of %q, want %q", first, c.o.Families)
	}
	rank := map[string]int{}
	for _, p := range plans {
		if p.rank < rank[p.Family] {
			t.Errorf("%q comes after what tells less", p.Says)
		}
		rank[p.Family] = p.rank
	}
	c.o.Families = []string{"slow", "crash"}
	for _, p := range c.plans() {
		if p.Family != "slow" && p.Family != "crash" {
			t.Errorf("a plan of %s is not asked for", p.Family)
		}
	}
}

func TestSeedDecidesBetweenEquals(t *testing.T) {
	order := func(seed uint64) (ids []string) {
		c := sailing()
		c.o.Seed = seed
		for _, p := range c.plans() {
			ids = append(ids, p.ID())
		}
		return ids
	}
	if !slices.Equal(order(1), order(1)) {
		t.Error("the same seed gives another order")
	}
	changed := false
	for seed := range uint64(5) {
		changed = changed || !slices.Equal(order(1), order(seed+2))
	}
	if !changed {
		t.Error("no seed gives another order")
	}
}

// TestPlansOfAFamily names what is done, without order.
func TestPlansOfAFamily(t *testing.T) {
	for name, want := range map[string][]string{
		"crash": {
			"0 after apply deployments victory", "0 before apply deployments victory", "0 after patch frigates/status victory", "0 before patch frigates/status victory",
			"0 after patch frigates/status victory (the 2nd in this step)", "0 before patch frigates/status victory (the 2nd in this step)",
			"1 after apply deployments victory", "1 before apply deployments victory",
		},
		"lost": {
			"0 answer apply deployments victory", "0 answer patch frigates/status victory", "0 answer patch frigates/status victory (the 2nd in this step)",
			"1 answer apply deployments victory",
		},
		"stale":      {"0 lag deployments", "1 lag frigates"},
		"unobserved": {"1 undone frigates"}, // nothing can be taken back in the first step, nor in the last
		"slow":       {"0 answers", "0 watches", "1 answers", "1 watches", "2 answers", "2 watches"},
		"drift": {
			"2 delete Deployment default/victory", "2 finalizer Deployment default/victory", "2 held Frigate default/victory", "2 edit Deployment default/victory spec.replicas=3",
			"2 orphan Deployment default/victory", "2 relabel Deployment default/victory", "2 rollout-restart Deployment default/victory", "2 status Frigate default/victory",
		},
		"pods":  {"2 never-ready", "2 crash-loop", "2 node-lost", "2 delete", "2 evicted", "0 image-pull"}, // images are pulled where pods are new
		"order": {"0 operator-late", "1 operator-late", "2 operator-late", "1 long-names", "1 namesakes", "1 recreate", "1 twins", "2 foreground"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range families[name].plans(sailing()) {
				got = append(got, summary(p))
				if p.Says == "" {
					t.Errorf("%s says nothing", summary(p))
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

func summary(p *Plan) string {
	parts := []string{string(rune('0' + p.Step)), p.Variant}
	if p.At != nil {
		parts = append(parts, p.At.String())
	}
	if p.Resource != nil {
		parts = append(parts, p.Resource.Resource)
	}
	if p.Object != "" {
		parts = append(parts, p.Object)
	}
	if len(p.Path) > 0 {
		value, _ := json.Marshal(p.Value) //nolint:errchkjson // numbers and texts
		parts = append(parts, strings.Join(p.Path, ".")+"="+string(value))
	}
	return strings.Join(parts, " ")
}

// TestMomentsAreChosenByCause has an operator that resizes a volume: it deletes the StatefulSet, and then changes the claims. If it is
// killed in between, it makes a new StatefulSet and forgets the claims. A small budget must come to that.
func TestMomentsAreChosenByCause(t *testing.T) {
	c := sailing()
	c.o.Families = []string{"crash"}
	at := func(reconcile uint64, verb, resource, name string, fields ...string) write {
		w := write{Moment: Moment{Verb: verb, Resource: resource, Name: name, Nth: 1}, reconcile: reconcile, fields: fields}
		w.Resource, w.Subresource, _ = strings.Cut(resource, "/")
		return w
	}
	c.reference[0].writes = []write{
		at(1, "create", "services", "a"), at(1, "create", "services", "b"), at(1, "create", "services", "c"), at(1, "create", "statefulsets", "a"), at(2, "patch", "rabbits/status", "a"),
		at(3, "patch", "rabbits/status", "a"), at(0, "patch", "configmaps", "a"),
	}
	c.reference[0].writes[5].Nth = 2
	c.reference[1].writes = []write{at(4, "delete", "statefulsets", "a"), at(4, "patch", "claims", "a"), at(4, "patch", "claims", "b"), at(5, "create", "statefulsets", "a")}
	c.reference[2].writes = []write{at(6, "delete", "secrets", "a"), at(7, "update", "rabbits", "a", "metadata.finalizers[0]")}
	var got []string
	for _, p := range c.plans() {
		if p.Variant == "after" {
			got = append(got, fmt.Sprintf("%d: %s", p.rank, summary(p)))
		}
	}
	slices.Sort(got[1:]) // within a rank, the seed decides
	expectLines(t, got, "0: 1 after delete statefulsets a",
		"1: 0 after create services a", "1: 1 after patch claims a", "1: 2 after delete secrets a", "1: 2 after update rabbits a",
		"2: 0 after create services b", "2: 0 after create statefulsets a", "2: 1 after create statefulsets a",
		"3: 0 after create services c", "3: 0 after patch configmaps a",
		"4: 0 after patch rabbits/status a", "5: 0 after patch rabbits/status a (the 2nd in this step)", "5: 1 after patch claims b")
}

// TestOlderViewsThatDeletionsDependOnComeFirst is about the most harmful that an operator can do because of one.
func TestOlderViewsThatDeletionsDependOnComeFirst(t *testing.T) {
	pods, services, claims := lens.Resource{Resource: "pods"}, lens.Resource{Resource: "services"}, lens.Resource{Resource: "claims"}
	delivery := func(of lens.Resource) *lens.Event {
		return &lens.Event{Delivery: &lens.Delivery{Resource: of, Type: "MODIFIED"}}
	}
	s := &stage{}
	s.learnWrites(nil, []*lens.Event{
		delivery(services), request(lens.Request{Verb: "delete", Resource: lens.Resource{Resource: "secrets", Name: "a"}, Status: 403}),
		delivery(pods), request(lens.Request{Verb: "delete", Resource: lens.Resource{Resource: "claims", Name: "a"}, Status: 200}), delivery(claims),
	}, &elections{})
	c := sailing()
	c.reference = []*stage{s}
	c.anyAge = map[lens.Resource]bool{pods: true}
	var got []string
	for _, p := range stalePlans(c) {
		got = append(got, fmt.Sprintf("%d: %s", p.rank, summary(p)))
	}
	expectLines(t, got, "0: 0 lag services", "0: 0 lag pods", "1: 0 lag claims", "1: 0 older-list pods")
}

// TestRefusalsFitTheirWrites is about conflicts and quotas: a create has no version that could be old, and an update needs no quota.
func TestRefusalsFitTheirWrites(t *testing.T) {
	c := sailing()
	c.reference[0].writes = []write{{Moment: Moment{Verb: "create", Resource: "configmaps", Nth: 1}}, {Moment: Moment{Verb: "update", Resource: "configmaps", Nth: 1}}}
	got := map[string][]string{}
	for _, p := range refusedPlans(c) {
		if p.Step == 0 {
			got[p.At.Verb] = append(got[p.At.Verb], p.Variant)
		}
	}
	for verb, want := range map[string][]string{
		"create": {"error", "denied", "timeout", "error-3", "quota", "busy", "right"},
		"update": {"error", "conflict", "denied", "timeout", "error-3", "busy", "right", "conflict-1"},
	} {
		if !slices.Equal(got[verb], want) {
			t.Errorf("%s is refused with %q, want %q", verb, got[verb], want)
		}
	}
}

func TestNothingIsPlannedForAnEmptyScenario(t *testing.T) {
	c := sailing()
	c.o.Steps, c.reference = c.o.Steps[:1], c.reference[:1]
	c.reference[0].state = world.State{}
	for _, name := range []string{"drift", "pods", "unobserved"} {
		if plans := families[name].plans(c); len(plans) > 0 {
			t.Errorf("%s plans %q before anything is there", name, plans[0].Says)
		}
	}
}
