// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/internal/prove/world"
)

// longNames is the variant in which two more custom resources have long names that differ only at the end. Operators make the names of
// other objects from that of a custom resource. What they add may make these too long, and what they cut off may make them equal. An
// operator must cope with that, or report it.
const longNames = "long-names"

// longest is the length of these names. Names of most objects may have 253 characters, but values of labels and names of Services only
// 63, so CRDs often limit names to that.
const longest = 63

// longSuffix matches what is added to a name.
var longSuffix = regexp.MustCompile(`(-long)+-?l?o?n?g?[12]`)

// longNamed returns two custom resources with such names for each that exists after a step, with the one that they are like.
func (c *campaign) longNamed(step int) (all []*unstructured.Unstructured, like map[*unstructured.Unstructured]*unstructured.Unstructured) {
	like = map[*unstructured.Unstructured]*unstructured.Unstructured{}
	for _, subject := range present(c.reference[step].state, c.o.Subjects) {
		name := subject.GetName() + strings.Repeat("-long", longest)
		for _, last := range []string{"1", "2"} {
			one := subject.DeepCopy()
			one.SetName(name[:longest-1] + last)
			all, like[one] = append(all, one), subject
		}
	}
	return all, like
}

// lengthen creates custom resources with long names, looks at what becomes of them, and deletes them.
func (r *run) lengthen(p *Plan) *disturbance {
	alike, like := r.campaign.longNamed(p.Step - 1)
	d := r.comeAndGo(alike)
	create, began, since, over := d.act, uint64(0), time.Time{}, rested{}
	d.act = func(ctx context.Context) error {
		began, since = r.lens.Stream().Last(), time.Now().Add(-time.Second) // times in events are in seconds
		err := create(ctx)
		if lens.IsRejected(err) {
			return &unjudgedError{"the API server accepts no names that long"}
		}
		return err
	}
	d.broken = func(then rested) []*Observation {
		over = then
		return nil
	}
	d.meanwhile = func(ctx context.Context) (wrong []*Observation, err error) {
		state := r.world.State()
		for _, one := range alike {
			_, live := find(state, one)
			_, original := find(state, like[one])
			if live == nil || original == nil {
				continue
			}
			wrongs := []*Observation{falselyReady(p.Step-1, state, live, original, refusedFor(live, r.board.answers(), r.events(began)))}
			if o := silent(p.Step-1, live, over); o != nil {
				warned, err := r.warnedAbout(ctx, live, since)
				if err != nil {
					return nil, err
				}
				if !warned {
					wrongs = append(wrongs, o)
				}
			}
			wrong = append(wrong, slices.DeleteFunc(wrongs, func(o *Observation) bool { return o == nil })...)
		}
		return wrong, nil
	}
	return d
}

// falselyReady returns what is wrong with a custom resource that says that it is ready although the API server refuses what the operator
// makes of it, or the custom resource lacks objects that one with a shorter name has.
func falselyReady(step int, state world.State, live, original *unstructured.Unstructured, refused map[Moment]string) *Observation {
	if !isSettledReady(live) {
		return nil
	}
	why := slices.Sorted(maps.Values(refused))
	have := kindsNamedAfter(state, live)
	for _, kind := range slices.Sorted(maps.Keys(kindsNamedAfter(state, original))) {
		if !have[kind] {
			why = append(why, "it has no "+kind+", unlike "+nameOfObject(original))
		}
	}
	if len(why) == 0 {
		return nil
	}
	field, claim := claimOf(live)
	return &Observation{
		Step: step, Verdict: "status", Severity: medium, Object: nameOfObject(live), Fields: []string{field},
		Title: aKind(live.GetKind()) + " with a long name reports that it is ready although it is not", Want: "not " + claim + ", because " + why[0], Got: claim,
	}
}

// kindsNamedAfter returns the kinds of what a custom resource controls and what has its name. Others may be shared, or have run to
// their end.
func kindsNamedAfter(state world.State, owner *unstructured.Unstructured) map[string]bool {
	uid, kinds := owner.GetUID(), map[string]bool{}
	start := owner.GetName()[:min(len(owner.GetName()), longest/2)] // the rest may be cut off
	for key, object := range state {
		if controller := metav1.GetControllerOf(object); controller != nil && controller.UID == uid && uid != types.UID("") &&
			strings.Contains(key.Name, start) && !slices.Contains(expendable, key.Resource) && object.GetDeletionTimestamp() == nil {
			kinds[key.Kind] = true
		}
	}
	return kinds
}

// silent returns what is wrong with a custom resource that has no status although the operator keeps failing to reconcile it.
func silent(step int, live *unstructured.Unstructured, over rested) *Observation {
	status, _, _ := unstructured.NestedMap(live.Object, "status")
	failure := over.failsAt[live.GetNamespace()+"/"+live.GetName()]
	if len(status) > 0 || failure == "" {
		return nil
	}
	return &Observation{
		Step: step, Verdict: "status", Severity: low, Object: nameOfObject(live), Title: aKind(live.GetKind()) + " with a long name fails without a report",
		Want: "the name is refused at admission, or the status or a Warning event says what is wrong", Got: "no status; the operator fails each time: " + shortened(firstLine(failure)),
	}
}
