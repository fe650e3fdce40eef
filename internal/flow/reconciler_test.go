// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	robotv1 "github.com/opdock/opdock/api/robot/v1"
)

// world is a reconciler for Robots whose passes do what the test says.
type world struct {
	*Reconciler[*robotv1.Robot]

	t      *testing.T
	clock  *testclock.FakePassiveClock
	events *events.FakeRecorder
	writes []string
	step   func(*Pass, *robotv1.Robot) error
	// cached, if set, is what the cache holds, however old it is.
	cached *robotv1.Robot
}

func newWorld(t *testing.T, robot *robotv1.Robot) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := robotv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: testclock.NewFakePassiveClock(time.Now()), events: events.NewFakeRecorder(100)}
	w.step = func(*Pass, *robotv1.Robot) error { return nil }
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(robot).WithStatusSubresource(robot).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, subresource string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes = append(w.writes, subresource)
			return c.SubResource(subresource).Patch(ctx, o, p, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			w.writes = append(w.writes, "object")
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	cache := interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if w.cached == nil {
				return c.Get(ctx, key, o, opts...)
			}
			w.cached.DeepCopyInto(o.(*robotv1.Robot))
			return nil
		},
	})
	w.Reconciler = &Reconciler[*robotv1.Robot]{
		Kind: Kind[*robotv1.Robot]{
			Name: "Robot",
			View: func(r *robotv1.Robot) View {
				return View{Suspended: r.Spec.Suspend, ObservedGeneration: &r.Status.ObservedGeneration, Conditions: &r.Status.Conditions}
			},
			Reconcile: func(_ context.Context, pass *Pass, r *robotv1.Robot) error { return w.step(pass, r) },
		},
		Client: cache, Reader: c, Events: w.events, Clock: w.clock,
	}
	return w
}

func robot() *robotv1.Robot {
	return &robotv1.Robot{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "n", Generation: 1, UID: "u"}}
}

// oldRobot is one that has a status already.
func oldRobot() *robotv1.Robot {
	r := robot()
	r.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionUnknown, Reason: ReasonSuspended}}
	return r
}

func (w *world) reconcile() (ctrl.Result, error) {
	w.t.Helper()
	w.writes = nil
	return w.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(robot())})
}

func (w *world) get() *robotv1.Robot {
	w.t.Helper()
	r := robot()
	if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(r), r); err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) eventsSoFar() (result []string) {
	for {
		select {
		case e := <-w.events.Events:
			result = append(result, e)
		default:
			return result
		}
	}
}

func TestAQuietPassWritesNothing(t *testing.T) {
	w := newWorld(t, robot())
	for pass, want := range []int{1, 0, 0} {
		if result, err := w.reconcile(); err != nil || result != (ctrl.Result{}) {
			t.Fatal(result, err)
		}
		if len(w.writes) != want {
			t.Errorf("pass %d: %v", pass+1, w.writes)
		}
	}
}

func TestNumbersAreWrittenNowAndThenAndVerdictsAtOnce(t *testing.T) {
	w := newWorld(t, oldRobot())
	available := int32(0)
	var outcome error
	w.step = func(_ *Pass, r *robotv1.Robot) error {
		r.Status.AvailableReplicas = available
		return outcome
	}
	outcome = Waiting("RollingOut", "0 of 3")
	if _, err := w.reconcile(); err != nil || len(w.writes) != 1 {
		t.Fatal(err, w.writes)
	}
	available, outcome = 1, Waiting("RollingOut", "1 of 3")
	if result, err := w.reconcile(); err != nil || len(w.writes) != 0 || result.RequeueAfter != MinorInterval {
		t.Fatal("a number was written at once", err, w.writes, result)
	}
	w.clock.SetTime(w.clock.Now().Add(MinorInterval))
	if result, err := w.reconcile(); err != nil || len(w.writes) != 1 || result.RequeueAfter != 0 || w.get().Status.AvailableReplicas != 1 {
		t.Fatal("a number was not written in time", err, w.writes, result)
	}
	available, outcome = 3, nil
	if _, err := w.reconcile(); err != nil || len(w.writes) != 1 || w.get().Status.AvailableReplicas != 3 {
		t.Fatal("the verdict was not written at once", err, w.writes)
	}
}

func TestACacheThatLagsBehindIsNotBelieved(t *testing.T) {
	w := newWorld(t, robot())
	outcome := Waiting("RollingOut", "0 of 3")
	w.step = func(*Pass, *robotv1.Robot) error { return outcome }
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	before := w.get()
	outcome = nil
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	// The rollout goes back to where the cache still is: nothing would be written if that were believed.
	w.cached, outcome = before, Waiting("RollingOut", "0 of 3")
	if _, err := w.reconcile(); err != nil || len(w.writes) != 1 {
		t.Fatal(err, w.writes)
	}
	w.cached = nil
	if got := describeConditions(w.get().Status.Conditions); got != "Ready=False RollingOut, Reconciling=True RollingOut" {
		t.Error(got)
	}
}

func TestResultsOfOutcomes(t *testing.T) {
	gone := apierrors.NewNotFound(corev1.Resource("pods"), "p")
	terminating := apierrors.NewForbidden(corev1.Resource("pods"), "p", errors.New("going"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, test := range []struct {
		name    string
		outcome error
		after   time.Duration
		fails   bool
		writes  int
	}{
		{"ready", nil, 0, false, 1},
		{"waiting", Waiting("W", "w"), 0, false, 1},
		{"waiting for time", WaitingFor(time.Minute, "W", "w"), time.Minute, false, 1},
		{"stalled", Stalled("S", errors.New("s")), 0, false, 1},
		{"stalled by something that cannot be watched", StalledRetrying("S", errors.New("s")), 0, true, 1},
		{"held", Hold(time.Second), time.Second, false, 0},
		{"failed", gone, 0, true, 1},
		{"failed for a moment", apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("c")), 0, true, 0},
		{"in a namespace that goes", terminating, 0, false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, oldRobot())
			w.step = func(*Pass, *robotv1.Robot) error { return test.outcome }
			result, err := w.reconcile()
			if result.RequeueAfter != test.after || (err != nil) != test.fails || len(w.writes) != test.writes {
				t.Errorf("got %v, %v, writes %v", result, err, w.writes)
			}
		})
	}
}

func TestSuspendedObjectsAreNotTouched(t *testing.T) {
	r := robot()
	r.Spec.Suspend = true
	w := newWorld(t, r)
	w.step = func(*Pass, *robotv1.Robot) error { t.Error("it was looked at"); return nil }
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := describeConditions(w.get().Status.Conditions); got != "Ready=Unknown Suspended" {
		t.Error(got)
	}
}

func TestEvents(t *testing.T) {
	w := newWorld(t, robot())
	outcome := Stalled("Quota", errors.New("exceeded"))
	w.step = func(pass *Pass, _ *robotv1.Robot) error {
		pass.Changed("Created a")
		pass.Changed("Created b")
		return outcome
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := w.eventsSoFar(); !slices.Equal(got, []string{"Normal Synced Created a, Created b", "Warning Quota exceeded"}) {
		t.Errorf("%q", got)
	}
	// The same standstill in other words is no news.
	w.step = func(*Pass, *robotv1.Robot) error { return Stalled("Quota", errors.New("still exceeded")) }
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := w.eventsSoFar(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func TestLongEventsAreCut(t *testing.T) {
	note := summary(slices.Repeat([]string{strings.Repeat("x", 100)}, 50), maxNote)
	if len(note) > maxNote || !strings.HasSuffix(note, "(50 changes)") {
		t.Errorf("%d bytes: …%s", len(note), note[len(note)-30:])
	}
}

// Another writer removes the finalizer whenever it sees it.
func TestAContestAboutTheFinalizer(t *testing.T) {
	w := newWorld(t, robot())
	w.Finalize = func(context.Context, *Pass, *robotv1.Robot) error { return nil }
	w.step = func(*Pass, *robotv1.Robot) error { return nil }
	added := 0
	for range 5 * contestAfter {
		if _, err := w.reconcile(); err != nil && !IsStalled(err) {
			t.Fatal(err)
		}
		live := w.get()
		if !slices.Contains(live.Finalizers, Finalizer) {
			continue
		}
		added++
		live.Finalizers = nil
		if err := w.Client.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	got := describeConditions(w.get().Status.Conditions)
	if added > 2*contestAfter || !strings.Contains(got, "Ready=False "+ReasonContested) {
		t.Errorf("it was added %d times: %s", added, got)
	}
}

func TestFinalizing(t *testing.T) {
	w := newWorld(t, robot())
	outcome := Waiting("Deleting", "two left")
	w.Finalize = func(context.Context, *Pass, *robotv1.Robot) error { return outcome }
	if _, err := w.reconcile(); err != nil || !slices.Contains(w.get().Finalizers, Finalizer) {
		t.Fatal("no finalizer", err)
	}
	if err := w.Client.Delete(t.Context(), w.get()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil || !slices.Contains(w.get().Finalizers, Finalizer) {
		t.Fatal("gone too early", err)
	}
	if got := describeConditions(w.get().Status.Conditions); got != "Ready=False Deleting, Reconciling=True Deleting" {
		t.Error(got)
	}
	// What passes is tried again and leaves no trace in the status; a failure has its own pauses.
	outcome = apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("c"))
	if result, err := w.reconcile(); err == nil || result != (ctrl.Result{}) || len(w.writes) != 0 {
		t.Error(result, err, w.writes)
	}
	outcome = errors.New("it cannot be deleted")
	if result, err := w.reconcile(); err == nil || result != (ctrl.Result{}) {
		t.Error(result, err, w.writes)
	}
	outcome = nil
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(robot()), robot()); !apierrors.IsNotFound(err) {
		t.Error("it is still there", err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Error("an object that is gone:", err)
	}
}
