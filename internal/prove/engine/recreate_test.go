// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opdock/opdock/internal/prove/world"
)

// leaving is a run with a custom resource whose finalizer the operator removes after a while; never if that is 0.
func leaving(t *testing.T, after time.Duration) (*run, *unstructured.Unstructured) {
	t.Helper()
	victory := sceneObject("Frigate", "victory")
	held := victory.DeepCopy()
	held.SetUID("old")
	held.SetFinalizers([]string{"sea.example.com/harbor"})
	c := sceneOf([]*unstructured.Unstructured{victory}, nil, sceneState(held), world.State{})
	c.o.Settling = DefaultSettling
	c.o.Steps[1].Ends = true
	r := &run{campaign: c, objects: fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(held).Build(), world: &world.World{}, board: newSwitchboard(c.named), activity: newActivity()}
	if after > 0 {
		time.AfterFunc(after, func() {
			err := r.change(t.Context(), victory, func(live *unstructured.Unstructured) { live.SetFinalizers(nil) })
			if err != nil {
				t.Error(err)
			}
		})
	}
	return r, victory
}

// TestRecreationAfterALongDeletion is about a finalizer that takes about as long as a step may take.
func TestRecreationAfterALongDeletion(t *testing.T) {
	for _, after := range []time.Duration{time.Second, DefaultSettling.Bound - time.Second, DefaultSettling.Bound + time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, victory := leaving(t, after)
				if err := r.recreate(t.Context(), []*unstructured.Unstructured{victory}); err != nil {
					t.Fatal(err)
				}
				if live, err := r.live(t.Context(), victory); err != nil || live.GetUID() == "old" {
					t.Errorf("it is not created again: %v, %v", live, err)
				}
			})
		})
	}
}

// TestDeletionsThatDoNotEnd is about an operator that never removes its finalizer. That is its fault, and no run that broke down.
func TestDeletionsThatDoNotEnd(t *testing.T) {
	for about, test := range map[string]struct {
		undisturbed bool // it does not do so undisturbed either
		failing     []string
		want        string
		skipped     string
	}{
		"only when it is created again":    {want: "deletion: The deletion of a Frigate does not end"},
		"undisturbed either":               {undisturbed: true, skipped: "undisturbed either"},
		"it is stuck as it is undisturbed": {failing: []string{usual}, skipped: ""},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, victory := leaving(t, 0)
				if test.undisturbed {
					r.campaign.reference[1].state = r.campaign.reference[0].state
				}
				err := r.recreate(t.Context(), []*unstructured.Unstructured{victory})
				if left := (*undeletedError)(nil); len(test.failing) > 0 && errors.As(err, &left) {
					r.campaign.failing = map[string]string{}
					r.campaign.learnFailing(test.failing)
					left.over.failing = test.failing
				}
				var result outcome
				if err := r.orUndeleted(0, &result, err); err != nil {
					t.Fatalf("the run broke down: %v", err)
				}
				var got []string
				for _, o := range result.wrong {
					got = append(got, o.Verdict+": "+o.Title)
				}
				if strings.Join(got, ", ") != test.want || !strings.HasSuffix(result.skipped, test.skipped) || (result.skipped != "") != (test.skipped != "") || (result.excused != "") != (len(test.failing) > 0) {
					t.Errorf("got %q, skipped %q, excused %q", got, result.skipped, result.excused)
				}
			})
		})
	}
}
