// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/flow"
)

// desk is a Collector and a Reconciler that looks at it, at times that the test sets.
type desk struct {
	*Reconciler
	t         *testing.T
	clock     *testingclock.FakePassiveClock
	collector *collectorv1.Collector
	pods      []corev1.Pod
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	return &desk{
		Reconciler: &Reconciler{Clock: clock, watchers: newWatchers(clock)}, t: t, clock: clock,
		collector: &collectorv1.Collector{
			ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "all", UID: "1", Generation: 1},
			Spec:       collectorv1.CollectorSpec{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, DebounceMilliseconds: ptr.To[int32](1000)},
		},
	}
}

// look is a pass as the flow does it, without an output. It returns whether the pass was held, and whether the status
// would be written.
func (d *desk) look(outcome error) (held, written bool) {
	d.t.Helper()
	before := d.collector.DeepCopy()
	s := &scope{collector: d.collector}
	err := flow.Run(context.Background(), s, d.watch, d.awaitPause)
	if err == nil {
		s.addresses = addresses(d.pods, d.collector.Spec)
		err = d.report(s, outcome)
	}
	if err != nil && !flow.IsStalled(err) {
		return true, false
	}
	status := metav1.ConditionTrue
	if err != nil {
		status = metav1.ConditionFalse
	}
	meta.SetStatusCondition(&d.collector.Status.Conditions, metav1.Condition{
		Type: sharedv1.ConditionReady, Status: status, Reason: "Any", ObservedGeneration: d.collector.Generation,
	})
	written = !sameStatus(before, d.collector)
	return false, written
}

func sameStatus(a, b *collectorv1.Collector) bool {
	difference, err := client.MergeFrom(a).Data(b)
	return err == nil && string(difference) == "{}"
}

func (d *desk) after(pause time.Duration) { d.clock.SetTime(d.clock.Now().Add(pause)) }

func (d *desk) expect(what string, outcome error, held, written bool) {
	d.t.Helper()
	if gotHeld, gotWritten := d.look(outcome); gotHeld != held || gotWritten != written {
		d.t.Errorf("%s: held is %t and written %t", what, gotHeld, gotWritten)
	}
}

// happens changes a pod and returns after how long the Collector is to look; -1 if it is not.
func (d *desk) happens(what collectorv1.EventType, old, now *corev1.Pod) time.Duration {
	after, woken := d.watchers.podHappened(what, old, now)[types.NamespacedName{Namespace: "here", Name: "all"}]
	if !woken {
		return -1
	}
	return after
}

func TestWritesWaitForAPause(t *testing.T) {
	d := newDesk(t)
	d.expect("the first look", nil, false, true)
	d.expect("nothing has happened", nil, false, false)

	d.pods = append(d.pods, aPod("a", "10.0.0.1"))
	if after := d.happens(collectorv1.EventAdded, nil, &d.pods[0]); after != time.Second {
		t.Errorf("it is to look after %v", after)
	}
	d.expect("at once", nil, true, false)
	d.after(900 * time.Millisecond)
	d.expect("before the pause is over", nil, true, false)
	d.after(100 * time.Millisecond)
	d.expect("after the pause", nil, false, true)
	if status := d.collector.Status; status.AddressCount != 1 || status.Reconciles != 3 || len(status.Events) != 1 || !status.LastChangeTime.Time.Equal(d.clock.Now()) {
		t.Errorf("the status is %+v", status)
	}

	// Changes without a pause: it is written all the same, after some time.
	for i := range patience * 2 {
		pod := aPod("b", "10.0.0.2")
		d.pods = []corev1.Pod{pod}
		d.happens(collectorv1.EventAdded, nil, &pod)
		d.after(500 * time.Millisecond)
		last := i == patience*2-1
		d.expect("while it goes on", nil, !last, last)
	}

	// A new spec does not wait.
	d.pods = nil
	d.happens(collectorv1.EventDeleted, ptr.To(aPod("b", "10.0.0.2")), nil)
	d.collector.Generation++
	d.expect("a new spec", nil, false, true)
	if d.collector.Status.AddressCount != 0 {
		t.Errorf("the status is %+v", d.collector.Status)
	}
	d.after(time.Hour)
	d.expect("much later", nil, false, false)
}

func TestCountsAreNoReasonToWriteByThemselves(t *testing.T) {
	d := newDesk(t)
	d.pods = []corev1.Pod{aPod("a", "10.0.0.1")}
	d.expect("the first look", nil, false, true)
	d.expect("a look without reason", nil, false, false)

	changed := with(aPod("a", "10.0.0.1"), func(pod *corev1.Pod) { pod.Labels["other"] = "x" })
	if after := d.happens(collectorv1.EventModified, &d.pods[0], &changed); after != countInterval {
		t.Errorf("it is to look after %v", after)
	}
	d.expect("a change of no address", nil, true, false)
	d.after(countInterval)
	d.expect("some time later", nil, false, true)
	if events := d.collector.Status.Events; len(events) != 1 || events[0].Count != 1 || events[0].Kind != "Pod" || events[0].Type != collectorv1.EventModified {
		t.Errorf("the events are %+v", events)
	}
	d.expect("once more", nil, false, false)

	// Another manager begins with what the first has written, and with nothing else.
	written := d.collector.Status.DeepCopy()
	d.watchers = newWatchers(d.clock)
	d.expect("after a restart", nil, false, false)
	d.pods[0] = with(aPod("a", "10.0.0.1"), unready)
	d.happens(collectorv1.EventModified, &changed, &d.pods[0])
	d.after(time.Second)
	d.expect("a change after a restart", nil, false, true)
	if status := d.collector.Status; status.Events[0].Count != 2 || status.Reconciles != written.Reconciles+2 {
		t.Errorf("the status is %+v, after %+v", status, written)
	}
}

func TestAStalledOutputIsWrittenOnce(t *testing.T) {
	d := newDesk(t)
	stalled := flow.Stalled("Any", errors.New("any"))
	d.expect("the first look", stalled, false, true)
	d.expect("still stalled", stalled, false, false)
	d.pods = []corev1.Pod{aPod("a", "10.0.0.1")}
	d.expect("another address", stalled, false, true)
	d.expect("not stalled any more", nil, false, true)
	d.expect("nothing has happened", nil, false, false)
}

func TestWhichPodsWakeACollector(t *testing.T) {
	other := with(aPod("a", "10.0.0.1"), func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "db"} })
	elsewhere := with(aPod("a", "10.0.0.1"), func(pod *corev1.Pod) { pod.Namespace = "elsewhere" })
	for name, test := range map[string]struct {
		old, now *corev1.Pod
		want     time.Duration
	}{
		"picked":              {nil, ptr.To(aPod("a", "10.0.0.1")), time.Second},
		"without an address":  {nil, ptr.To(aPod("a")), countInterval},
		"gets an address":     {ptr.To(aPod("a")), ptr.To(aPod("a", "10.0.0.1")), time.Second},
		"not picked":          {nil, &other, -1},
		"elsewhere":           {nil, &elsewhere, -1},
		"picked no more":      {ptr.To(aPod("a", "10.0.0.1")), &other, time.Second},
		"picked now":          {&other, ptr.To(aPod("a", "10.0.0.1")), time.Second},
		"gone":                {ptr.To(aPod("a", "10.0.0.1")), nil, time.Second},
		"gone after its end":  {ptr.To(with(aPod("a", "10.0.0.1"), succeeded)), nil, countInterval},
		"not ready any more":  {ptr.To(aPod("a", "10.0.0.1")), ptr.To(with(aPod("a", "10.0.0.1"), unready)), time.Second},
		"something unrelated": {ptr.To(aPod("a", "10.0.0.1")), ptr.To(aPod("a", "10.0.0.1")), countInterval},
	} {
		d := newDesk(t)
		d.look(nil)
		if got := d.happens(collectorv1.EventModified, test.old, test.now); got != test.want {
			t.Errorf("%s: it is to look after %v, not %v", name, got, test.want)
		}
	}
}

func TestRecreatedCollectorStartsOver(t *testing.T) {
	d := newDesk(t)
	d.look(nil)
	d.happens(collectorv1.EventAdded, nil, ptr.To(aPod("a")))
	gone := d.collector.DeepCopy()
	d.collector = newDesk(t).collector
	d.collector.UID = "2"
	d.look(nil)
	if status := d.collector.Status; status.Reconciles != 1 || status.Events != nil {
		t.Errorf("the status is %+v", status)
	}
	// News of the first one comes late and does not harm the second.
	d.watchers.forget(gone)
	if d.happens(collectorv1.EventAdded, nil, ptr.To(aPod("a"))) < 0 {
		t.Error("the second one has been forgotten")
	}
	d.watchers.forget(d.collector)
	if len(d.watchers.byNamespace) != 0 {
		t.Errorf("something is left: %v", d.watchers.byNamespace)
	}
}
