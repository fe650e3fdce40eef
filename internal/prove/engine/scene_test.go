// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opdock/opdock/internal/prove/world"
)

// hiding is a scenario whose first step brings a custom resource and objects that the world does not show as they were applied: a
// PriorityClass and a Lease not at all, and an Issuer of another project without the namespace that it was given.
type hiding struct {
	victory, issuer, class, lease *unstructured.Unstructured
	campaign                      *campaign
	seen                          world.State
}

func (h *hiding) others() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{h.issuer, h.class, h.lease}
}

// cluster has objects as an API server has them.
func (h *hiding) cluster(objects ...*unstructured.Unstructured) client.WithWatch {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(h.victory.GroupVersionKind(), meta.RESTScopeNamespace)
	mapper.Add(h.lease.GroupVersionKind(), meta.RESTScopeNamespace)
	mapper.Add(h.class.GroupVersionKind(), meta.RESTScopeRoot)
	mapper.Add(h.issuer.GroupVersionKind(), meta.RESTScopeRoot)
	built := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(mapper)
	for _, one := range objects {
		built.WithObjects(h.stored(one))
	}
	return built.Build()
}

func (h *hiding) stored(one *unstructured.Unstructured) *unstructured.Unstructured {
	one = one.DeepCopy()
	if one.GetKind() == "ClusterIssuer" {
		one.SetNamespace("")
		one.Object["filled"] = "in" // by the API server
	}
	return one
}

func newHiding(t *testing.T) *hiding {
	t.Helper()
	other := func(group, kind, namespace string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
		object.SetNamespace(namespace)
		object.SetName("harbor")
		return object
	}
	h := &hiding{
		victory: sceneObject("Frigate", "victory"), issuer: other("cert-manager.io", "ClusterIssuer", "default"),
		class: other("scheduling.k8s.io", "PriorityClass", ""), lease: other("coordination.k8s.io", "Lease", "default"),
	}
	h.seen = sceneState(h.victory, h.stored(h.issuer))
	h.campaign = sceneOf([]*unstructured.Unstructured{h.victory}, h.others(), h.seen, h.seen)
	for _, s := range h.campaign.reference {
		var err error
		if s.unseen, err = h.campaign.unseen(t.Context(), h.cluster(append(h.others(), h.victory)...), s.state); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// expect checks which objects of the scenario a cluster has.
func (h *hiding) expect(t *testing.T, when string, r *run, want ...*unstructured.Unstructured) {
	t.Helper()
	for _, one := range append(h.others(), h.victory) {
		_, err := r.live(t.Context(), h.stored(one))
		if err != nil { // an API server would have dropped the namespace
			_, err = r.live(t.Context(), one)
		}
		if (err == nil) != slices.Contains(want, one) {
			t.Errorf("%s: %s is there: %v", when, one.GetKind(), err == nil)
		}
	}
}

// TestHiddenObjectsComeLate must create them all in the end, or the operator lacks them.
func TestHiddenObjectsComeLate(t *testing.T) {
	h := newHiding(t)
	r := &run{campaign: h.campaign, objects: h.cluster()}
	d, err := reorder(r, &Plan{Family: "order", Variant: "late", Step: 0})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.act(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "disturbed", r, h.victory)
	if err := d.heal(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "healed", r, append(h.others(), h.victory)...)

	h.campaign.unseenBefore = h.campaign.reference[0].unseen
	if _, late := h.campaign.referredTo(0); !slices.Equal(late, []*unstructured.Unstructured{h.issuer}) {
		t.Errorf("got %v, want nothing that was there before", late)
	}
}

// TestObjectsThatTheOperatorMakesItself are not late.
func TestObjectsThatTheOperatorMakesItself(t *testing.T) {
	h := newHiding(t)
	h.campaign.o.Settling.Bound = createInterval // for an object that is in the way
	r := &run{campaign: h.campaign, objects: h.cluster(h.lease)}
	d, err := reorder(r, &Plan{Family: "order", Variant: "late", Step: 0})
	if err != nil {
		t.Fatal(err)
	}
	var unjudged *unjudgedError
	if err := d.heal(t.Context()); !errors.As(err, &unjudged) || !strings.Contains(err.Error(), "Lease default/harbor") {
		t.Errorf("got %v, want a run that is not judged", err)
	}
}

// TestTakingBackKeepsHiddenObjects is about a step that brings none of them.
func TestTakingBackKeepsHiddenObjects(t *testing.T) {
	h := newHiding(t)
	r := &run{campaign: h.campaign, objects: h.cluster(append(h.others(), h.victory)...), world: world.Of(h.seen)}
	before, err := r.applied(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(before) != len(h.others())+1 {
		t.Errorf("got %v, want all of them", before)
	}
	if err := r.takeBack(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	h.expect(t, "taken back", r, append(h.others(), h.victory)...)
	if !h.campaign.canUndo(1) {
		t.Error("a step that changes none of them cannot be taken back")
	}
	h.campaign.reference[1].unseen = nil
	if h.campaign.canUndo(1) {
		t.Error("a step that deletes some of them can be taken back")
	}
}

// TestTakingBackBeforeAKindIsKnown is about an object of a later step, which also brings its CRD.
func TestTakingBackBeforeAKindIsKnown(t *testing.T) {
	h := newHiding(t)
	unknown := &meta.NoKindMatchError{GroupKind: h.issuer.GroupVersionKind().GroupKind()}
	for about, test := range map[string]struct{ err, want error }{
		"its kind is not known": {unknown, nil},
		"it cannot be deleted":  {errors.ErrUnsupported, errors.ErrUnsupported},
	} {
		objects := interceptor.NewClient(h.cluster(h.victory), interceptor.Funcs{
			Delete: func(ctx context.Context, client client.WithWatch, object client.Object, options ...client.DeleteOption) error {
				if object.GetObjectKind().GroupVersionKind().Kind == h.issuer.GetKind() {
					return test.err
				}
				return client.Delete(ctx, object, options...)
			},
		})
		r := &run{campaign: h.campaign, objects: objects}
		if err := r.takeBack(t.Context(), []*unstructured.Unstructured{h.victory}); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v", about, err)
		}
	}
}

// TestFreshStartsHaveHiddenObjects must have those of the scenario, and only those.
func TestFreshStartsHaveHiddenObjects(t *testing.T) {
	h := newHiding(t)
	kinds := func() (kinds []string) {
		for _, one := range h.campaign.origins(h.campaign.sceneAt(0, h.seen)) {
			if kinds = append(kinds, one.GetKind()); one.GetNamespace() != h.stored(one).GetNamespace() {
				t.Errorf("%s is in the namespace %q", one.GetKind(), one.GetNamespace())
			}
			if one.Object["filled"] != nil {
				t.Errorf("%s is not as it was applied", one.GetKind())
			}
		}
		return kinds
	}
	if got := kinds(); !slices.Equal(got, []string{"ClusterIssuer", "PriorityClass", "Lease", "Frigate"}) {
		t.Errorf("got %q", got)
	}
	h.campaign.unseenBefore = h.campaign.reference[0].unseen
	if got := kinds(); !slices.Equal(got, []string{"ClusterIssuer", "Frigate"}) {
		t.Errorf("got %q, although the others are there before the scenario", got)
	}
}

// TestFreshStartsHaveWhatWasThereBefore is about objects of a scenario that the installation of the operator creates as well.
func TestFreshStartsHaveWhatWasThereBefore(t *testing.T) {
	crew, victory := sceneObject("Secret", "crew"), sceneObject("Frigate", "victory")
	crew.Object["data"] = map[string]any{"captain": "aGFyZHk="}
	installed := sceneObject("Secret", "crew")
	objects := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithReturnManagedFields().WithObjects(installed).Build()
	c := sceneOf([]*unstructured.Unstructured{victory}, []*unstructured.Unstructured{crew}, sceneState(crew, victory))
	c.before = sceneState(installed)
	c.o.Settling.Bound = createInterval // for an object that is in the way
	r := &run{campaign: c, objects: objects}
	if err := r.bring(t.Context(), c.origins(c.sceneAt(0, c.reference[0].state))); err != nil {
		t.Fatal(err)
	}
	live, err := r.live(t.Context(), crew)
	if err != nil {
		t.Fatal(err)
	}
	if data, _, _ := unstructured.NestedString(live.Object, "data", "captain"); data != "aGFyZHk=" {
		t.Errorf("got %v, want it as the scenario applies it", live.Object)
	}
	if _, err := r.live(t.Context(), victory); err != nil {
		t.Error(err)
	}
	c.before = sceneState(victory) // without clusters: an attempt would panic
	var impossible *noStartError
	if _, err := c.fresh(t.Context(), c.reference[0].state, nil, nil); !errors.As(err, &impossible) {
		t.Errorf("got %v for a custom resource that is not new", err)
	}
}
