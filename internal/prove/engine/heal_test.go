// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

// liftable begins a refusal that lasts until it is lifted, of an operator of which these events were seen.
func liftable(t *testing.T, events ...*lens.Event) (r *run, d *disturbance, nudged *atomic.Bool) {
	t.Helper()
	c := sailing()
	c.o.Settling = DefaultSettling
	r = &run{campaign: c, world: &world.World{}, board: newSwitchboard(c.named), activity: following(events...)}
	d, err := refuse(r, &Plan{Family: "refused", Variant: "denied", At: &Moment{Verb: "create", Resource: "configmaps", Nth: 1}})
	if err != nil {
		t.Fatal(err)
	}
	nudged = &atomic.Bool{}
	d.nudge = func(context.Context) error {
		nudged.Store(true)
		return nil
	}
	return r, d, nudged
}

// TestOperatorsThatGiveUpAreNotNudged is about what happens when a refusal is lifted. An operator that does not try again by itself
// would be healed by the campaign.
func TestOperatorsThatGiveUpAreNotNudged(t *testing.T) {
	gaveUp := reconciled(lens.Reconcile{ID: 1})
	later := reconciled(lens.Reconcile{ID: 1, RequeueAfter: 5 * time.Minute})
	// refused is a reconcile in which a write is refused by the campaign.
	refused := func(events []*lens.Event) []*lens.Event {
		denied := lens.Request{Verb: "create", Resource: deployments, Status: 403, Fault: "refused: denied", Reconcile: 1}
		return []*lens.Event{events[0], request(denied), events[1]}
	}
	other := func(controller, name string) (events []*lens.Event) {
		for _, e := range reconciled(lens.Reconcile{ID: 2, RequeueAfter: 5 * time.Minute}) {
			one := *e.Reconcile
			one.Controller, one.Name = controller, name
			events = append(events, &lens.Event{Reconcile: &one})
		}
		return events
	}
	for about, test := range map[string]struct {
		events []*lens.Event
		want   bool
	}{
		"it gave up":                             {gaveUp, false},
		"it tries again soon":                    {failed(8, "denied"), false},
		"it tries again within a step":           {failed(11, "denied"), false},
		"it backs off for minutes":               {failed(17, "denied"), true},
		"a timer within a step":                  {reconciled(lens.Reconcile{ID: 1, RequeueAfter: 20 * time.Second}), false},
		"a timer of minutes":                     {reconciled(lens.Reconcile{ID: 1, RequeueAfter: 5 * time.Minute}), true},
		"a timer of hours is as good as none":    {reconciled(lens.Reconcile{ID: 1, RequeueAfter: 10 * time.Hour}), false},
		"it tried again, and then gave up":       {slices.Concat(failed(17, "denied"), gaveUp), false},
		"nothing is known of reconciles at all":  {nil, true},
		"a timer of the object":                  {refused(later), true},
		"it gave up, another object has a timer": {slices.Concat(refused(gaveUp), other("frigate", "surprise")), false},
		"it gave up, another controller has one": {slices.Concat(other("logbook", "victory"), refused(gaveUp)), false},
		"all of them have timers":                {slices.Concat(refused(later), other("logbook", "victory")), true},
		"a timer after a refusal and a success":  {slices.Concat(refused(gaveUp), later), true},
		"the write is of no reconcile":           {slices.Concat(gaveUp, other("logbook", "victory")), true},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, d, nudged := liftable(t, test.events...)
				if _, err := r.endDisturbance(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				if nudged.Load() != test.want {
					t.Errorf("it was nudged: %v", nudged.Load())
				}
			})
		})
	}
}

// TestOperatorsThatLookAgainLater is about one that looks for a missing Secret every five minutes, and about one that never does.
func TestOperatorsThatLookAgainLater(t *testing.T) {
	for about, test := range map[string]struct {
		undisturbed, after time.Duration
		want               bool
	}{
		"it looks again":                    {0, 5 * time.Minute, true},
		"it gave up":                        {0, 0, false},
		"it gave up, and resyncs as always": {5 * time.Minute, 5 * time.Minute, false},
	} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				victory, crew := sceneObject("Frigate", "victory"), sceneObject("Secret", "crew")
				c := sceneOf([]*unstructured.Unstructured{victory}, []*unstructured.Unstructured{crew}, sceneState(victory, crew))
				c.o.Settling = DefaultSettling
				if test.undisturbed > 0 {
					c.reference[0].rested.timers = map[string]time.Duration{"frigate": test.undisturbed}
				}
				nudged := false
				objects := interceptor.NewClient(fake.NewClientBuilder().WithObjects(victory.DeepCopy()).Build(), interceptor.Funcs{
					Patch: func(ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
						nudged = true
						return to.Patch(ctx, object, patch, options...)
					},
				})
				r := &run{campaign: c, objects: objects, world: &world.World{}, board: newSwitchboard(c.named), activity: following(reconciled(lens.Reconcile{ID: 1, RequeueAfter: test.after})...)}
				d, err := reorder(r, &Plan{Family: "order", Variant: "late"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := r.endDisturbance(t.Context(), d); err != nil {
					t.Fatal(err)
				}
				if _, err := r.live(t.Context(), crew); err != nil || nudged != test.want {
					t.Errorf("it was nudged: %v; %v", nudged, err)
				}
			})
		})
	}
}

// TestTimersAfterARefusal is about an operator that looks again and again whether it may go on, and so did nothing for a while.
func TestTimersAfterARefusal(t *testing.T) {
	a := following(repeat(mostTimers+1, reconciled(lens.Reconcile{ID: 1, RequeueAfter: time.Second}))...)
	if got := a.outlook(time.Now(), nearFuture, nil); !got.due.IsZero() {
		t.Error("its timer is waited for before it may go on")
	}
	a.heal()
	if got := a.outlook(time.Now(), nearFuture, nil); got.due.IsZero() {
		t.Error("its timer is not waited for although it may go on")
	}
}

// TestClaimsOfOperatorsThatLookNowAndThen is about an operator that notices after ten seconds that its pods are broken, and about one
// that never does.
func TestClaimsOfOperatorsThatLookNowAndThen(t *testing.T) {
	for about, notices := range map[string]bool{"it notices": true, "it does not": false} {
		t.Run(about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const period = 10 * time.Second
				r, _, _ := liftable(t, reconciled(lens.Reconcile{ID: 1, RequeueAfter: period})...)
				var noticed atomic.Bool
				looks := time.AfterFunc(period, func() {
					for _, e := range reconciled(lens.Reconcile{ID: 2}) {
						r.activity.see(e)
					}
					noticed.Store(notices)
				})
				defer looks.Stop()
				result := &outcome{}
				judge := func(context.Context) ([]*Observation, error) {
					if noticed.Load() {
						return nil, nil
					}
					return []*Observation{{Verdict: "status"}}, nil
				}
				if err := r.judgeMeanwhile(t.Context(), judge, rested{}, result); err != nil {
					t.Fatal(err)
				}
				if blamed := len(result.wrong) > 0; blamed == notices {
					t.Errorf("it is blamed: %v", blamed)
				}
			})
		})
	}
}
