// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/flow"
)

// newHistory returns a PodCluster that was updated once, and its revision from before.
func newHistory(t *testing.T) (d *desk, old *appsv1.ControllerRevision) {
	t.Helper()
	d = newDesk(t, "{podReplicas: 1, image: a, updateStrategy: {type: OnDelete}}")
	d.settle()
	d.cluster.Spec.Image = "b"
	if err := d.Update(t.Context(), d.cluster); err != nil {
		t.Fatal(err)
	}
	d.settle()
	old = &appsv1.ControllerRevision{}
	old.Namespace, old.Name = d.cluster.Namespace, d.cluster.Status.CurrentRevision
	return d, old
}

// renumber changes the number of a revision as another writer.
func (d *desk) renumber(one *appsv1.ControllerRevision, number int64) {
	d.Helper()
	if err := d.Get(d.Context(), client.ObjectKeyFromObject(one), one); err != nil {
		d.Fatal(err)
	}
	one.Revision = number
	if err := d.Update(d.Context(), one, client.FieldOwner("rival")); err != nil {
		d.Fatal(err)
	}
}

// newest returns the name and the number of the newest revision.
func (d *desk) newest() (name string, number int64) {
	d.Helper()
	var all appsv1.ControllerRevisionList
	if err := d.List(d.Context(), &all); err != nil {
		d.Fatal(err)
	}
	for _, one := range all.Items {
		if one.Revision > number {
			name, number = one.Name, one.Revision
		}
	}
	return name, number
}

func TestANumberThatAnotherWriterHasRaised(t *testing.T) {
	for _, number := range []int64{100, math.MaxInt64} {
		d, old := newHistory(t)
		d.renumber(old, number)
		d.events()
		ready, _, err := d.pass()
		if err != nil || ready.Status != metav1.ConditionTrue {
			t.Fatalf("it is %+v (%v)", ready, err)
		}
		if name, newest := d.newest(); name == old.Name || newest != 2 {
			t.Errorf("the newest revision is %s with number %d", name, newest)
		}
		if found := strings.Join(d.events(), "; "); !strings.Contains(found, flow.ReasonDriftCorrected+" Restored ControllerRevision "+old.Name+": revision was changed") {
			t.Errorf("the events are %s", found)
		}
		// A rollback is no drift.
		d.cluster.Spec.Image = "a"
		if err := d.Update(t.Context(), d.cluster); err != nil {
			t.Fatal(err)
		}
		if ready, _, err := d.pass(); err != nil || ready.Status != metav1.ConditionTrue {
			t.Fatalf("it is %+v (%v)", ready, err)
		}
		if name, newest := d.newest(); name != old.Name || newest != 3 {
			t.Errorf("the newest revision is %s with number %d", name, newest)
		}
		if found := strings.Join(d.events(), "; "); strings.Contains(found, flow.ReasonDriftCorrected) {
			t.Errorf("the events are %s", found)
		}
	}
}

func TestAnImpossibleNumberOfTheTemplatesRevision(t *testing.T) {
	d, _ := newHistory(t)
	update := &appsv1.ControllerRevision{}
	update.Namespace = d.cluster.Namespace
	update.Name, _ = d.newest()
	d.renumber(update, math.MaxInt64)
	if ready, _, err := d.pass(); err != nil || ready.Status != metav1.ConditionTrue {
		t.Fatalf("it is %+v (%v)", ready, err)
	}
	if name, newest := d.newest(); name != update.Name || newest != 2 {
		t.Errorf("the newest revision is %s with number %d", name, newest)
	}
}

func TestAContestedNumber(t *testing.T) {
	for _, raises := range []bool{true, false} {
		d, one := newHistory(t)
		if !raises {
			one.Name, _ = d.newest()
		}
		contested := false
		for range 30 {
			number := int64(0)
			if raises {
				_, number = d.newest()
				number++
			}
			d.renumber(one, number)
			ready, _, err := d.pass()
			if err != nil {
				t.Fatal(err)
			}
			if contested = ready.Reason == flow.ReasonContested; contested {
				break
			}
		}
		if !contested {
			t.Errorf("there is no truce with a writer that raises a number: %t", raises)
		}
	}
}

func TestOtherNumbersAreRestoredForLonger(t *testing.T) {
	d, one := newHistory(t)
	for round := range 50 {
		d.renumber(one, int64(100+round))
		if ready, _, err := d.pass(); err != nil || ready.Reason == flow.ReasonContested {
			t.Fatalf("after %d edits it is %s, %v", round+1, ready.Reason, err)
		}
	}
}
