// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

// writing is a reconciler that writes an object, which gets the version.
func (s *stage) writing(verb string, object client.Object, version string) func(context.Context) (reconcile.Result, error) {
	return func(ctx context.Context) (reconcile.Result, error) {
		object = object.DeepCopyObject().(client.Object)
		err := s.write(ctx, verb, "", object, func() error {
			object.SetResourceVersion(version)
			return nil
		})
		return reconcile.Result{}, err
	}
}

func TestNoOp(t *testing.T) {
	status := func(o client.Object) { o.(*appsv1.Deployment).Status.ReadyReplicas++ }
	tests := map[string]struct {
		happens func(*stage)
		noop    bool
	}{
		"the first list":        {func(s *stage) { s.created(whytest.Web(), true) }, true},
		"a resync":              {func(s *stage) { s.updated(whytest.Web(), whytest.Web()) }, true},
		"its own status":        {func(s *stage) { s.changed(whytest.Web(), "x", status) }, true},
		"nothing but a version": {func(s *stage) { s.changed(whytest.Web(), "x", func(client.Object) {}) }, true},
		"its spec":              {func(s *stage) { s.changed(whytest.Web(), "x", replicas(1)) }, false},
		"its label":             {func(s *stage) { s.changed(whytest.Web(), "x", label(1)) }, false},
		"the status of another": {func(s *stage) {
			s.changed(pod("a"), "x", func(o client.Object) { o.(*corev1.Pod).Status.Phase = "Running" })
		}, false},
		"a new object":         {func(s *stage) { s.created(pod("a"), false) }, false},
		"a resync and another": {func(s *stage) { s.updated(whytest.Web(), whytest.Web()); s.created(pod("a"), false) }, false},
		"an unread field":      {func(s *stage) { s.controller.Reads(pod("a"), "status"); s.changed(pod("a"), "x", label(1)) }, true},
		"a field that is read": {func(s *stage) { s.controller.Reads(pod("a"), "metadata.labels"); s.changed(pod("a"), "x", label(1)) }, false},
		"a field within one":   {func(s *stage) { s.controller.Reads(pod("a"), "metadata"); s.changed(pod("a"), "x", label(1)) }, false},
		"the begin of a deletion": {func(s *stage) {
			s.changed(whytest.Web(), "x", func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) })
		}, false},
		"the cause is unknown": {func(*stage) {}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{})
			test.happens(s)
			want := ""
			if test.noop {
				want = "noop"
			}
			s.wantFindings(s.reconcile(nil), want)
			test.happens(s)
			s.wantFindings(s.reconcile(s.writing(verbUpdate, pod("b"), "77")), "")
		})
	}
}

func TestSelfInflicted(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), false)
	written := s.reconcile(s.writing(verbCreate, pod("a"), "7"))
	if len(written.Writes) != 1 || written.Writes[0].Object.Name != "a" || written.Writes[0].ResourceVersion != "7" || written.Written != 1 {
		t.Fatalf("the writes are %+v", written.Writes)
	}
	echo := pod("a")
	echo.ResourceVersion = "7"
	s.created(echo, false)
	r := s.reconcile(nil)
	s.wantFindings(r, "self-inflicted noop")
	if ref := r.Causes[0].Write; ref == nil || ref.Record != written.ID || ref.Index != 0 {
		t.Errorf("the write is %+v", ref)
	}

	// With another cause it is not.
	s.created(echo, false)
	s.created(pod("b"), false)
	s.wantFindings(s.reconcile(nil), "")

	// Another version of the same object is not its own either.
	echo.ResourceVersion = "8"
	s.created(echo, false)
	s.wantFindings(s.reconcile(nil), "")

	// A deletion has no version: it is told by the object.
	s.created(whytest.Web(), false)
	s.reconcile(s.writing(verbDelete, pod("a"), ""))
	s.changed(pod("a"), "", func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) })
	s.wantFindings(s.reconcile(nil), "self-inflicted noop")
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: pod("a")}, s.queue)
	s.wantFindings(s.reconcile(nil), "self-inflicted noop")

	total := s.recorder.Summary().Controllers[0]
	if total.SelfInflicted != 3 || total.Writes != 2 {
		t.Errorf("the total is %+v", total)
	}
}

func TestEchoBeforeTheAnswer(t *testing.T) {
	s := newStage(t, Options{})
	other := s.recorder.Controller("other", nil)
	s.created(whytest.Web(), false)
	writer := s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		object := pod("a")
		return reconcile.Result{}, s.write(ctx, verbCreate, "", object, func() error {
			object.ResourceVersion = "7"
			s.created(object, false)
			other.Handler(sameRequest).Create(ctx, event.CreateEvent{Object: object}, s.queue)
			return nil
		})
	})
	s.wantFindings(s.reconcile(nil), "self-inflicted noop")

	// Another object that it triggers also knows the write, but did not send it.
	if _, err := other.Reconciler(&fakeReconciler{}).Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	r := s.last()
	s.wantFindings(r, "")
	if ref := r.Causes[0].Write; r.Controller != "other" || ref == nil || ref.Record != writer.ID {
		t.Errorf("the write is %+v", ref)
	}
}

func TestLoopOfItsOwn(t *testing.T) {
	var lines []string
	logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	s := newStage(t, Options{LoopLength: 3, Logger: logger})
	s.created(whytest.Web(), false)
	s.reconcile(s.writing(verbUpdate, whytest.Web(), "101"))
	object := client.Object(whytest.Web())
	s.version = 100
	for i := range 5 {
		object = s.changed(object, "web-controller", label(i))
		r := s.reconcile(s.writing(verbUpdate, whytest.Web(), strconv.Itoa(102+i)))
		want := "self-inflicted"
		if i >= 2 {
			want += " loop"
		}
		s.wantFindings(r, want)
		if i < 2 {
			continue
		}
		loop := r.Findings[1]
		if loop.Path != "metadata.labels.label" || len(loop.Writers) != 1 || loop.Writers[0].Manager != "web-controller" ||
			!strings.Contains(loop.Message, fmt.Sprintf("%d times in a row", i+1)) {
			t.Errorf("the loop is %+v", loop)
		}
	}
	s.recorder.tellAll()
	if len(lines) != 1 || !strings.Contains(lines[0], "Loop") {
		t.Errorf("the log says %q", lines)
	}
	s.created(whytest.Web(), false)
	s.reconcile(s.writing(verbUpdate, whytest.Web(), "107"))
	s.changed(whytest.Web(), "web-controller", label(7)) // 106, which is known, but not owed to it alone
	s.created(pod("a"), false)
	s.wantFindings(s.reconcile(nil), "")
}

// A reconciler that deletes what it creates, and creates what it has deleted.
func TestLoopWithoutFields(t *testing.T) {
	s := newStage(t, Options{LoopLength: 2})
	child := func(uid string) *corev1.Pod {
		p := pod("a")
		p.UID, p.ResourceVersion = types.UID(uid), uid
		return p
	}
	s.created(whytest.Web(), false)
	s.reconcile(s.writing(verbCreate, child("10"), "10"))
	s.created(child("10"), false)
	s.reconcile(s.writing(verbDelete, child("10"), ""))
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: child("10")}, s.queue)
	deleting := s.reconcile(s.writing(verbCreate, child("11"), "11"))
	s.created(child("11"), false)
	creating := s.reconcile(nil)
	for want, r := range map[string]*Record{
		"triggered itself 2 times in a row, by deleting Pod default/a": deleting, "triggered itself 3 times in a row, by creating Pod default/a": creating,
	} {
		if found := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Type == Loop }); found < 0 || r.Findings[found].Message != want {
			t.Errorf("the findings are %+v, without %q", r.Findings, want)
		}
	}
}

func TestAmplification(t *testing.T) {
	var lines []string
	s := newStage(t, Options{Logger: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})})
	s.created(whytest.Web(), true)
	s.reconcile(nil)
	object := s.changed(whytest.Web(), "kubectl", replicas(1))
	s.reconcile(s.writing(verbUpdate, pod("a"), "50"))
	// What follows from it.
	s.changed(object, "kube-controller-manager", func(o client.Object) { o.(*appsv1.Deployment).Status.ReadyReplicas = 1 })
	s.reconcile(s.writing(verbUpdate, object, "51"))
	s.version = 50
	object = s.changed(object, "web-controller", replicas(1))
	s.reconcile(nil)
	// Known as one of ours from then on, even if the write was not seen.
	s.changed(object, "web-controller", replicas(2))
	s.reconcile(nil)
	// A user changes a child by hand.
	s.changed(pod("a"), "kubectl-edit", label(1))
	s.reconcile(s.writing(verbUpdate, pod("a"), "52"))
	total := s.recorder.Summary().Controllers[0]
	if total.UserChanges != 2 || total.ReconcilesPerChange != 2.5 || total.WritesPerChange != 1.5 {
		t.Errorf("the total is %+v", total)
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, `"reconcilesPerChange"=2.5 "writesPerChange"=1.5`) {
		t.Errorf("the log says %s", last)
	}
	if first := lines[0]; !strings.Contains(first, `"reconcilesPerChange"=0 "writesPerChange"=0`) {
		t.Errorf("before any change, the log says %s", first)
	}
}

func TestUserChangesOfKindsWithoutGenerations(t *testing.T) {
	s := newStage(t, Options{})
	s.controller = s.recorder.Controller("configs", &corev1.ConfigMap{})
	s.handler = s.controller.Handler(sameRequest)
	object := client.Object(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "c", ResourceVersion: "1"}})
	for i := range 3 {
		object = s.changed(object, "kubectl-edit", func(o client.Object) { o.(*corev1.ConfigMap).Data = map[string]string{"a": strconv.Itoa(i)} })
		s.reconcile(nil)
	}
	wantChanges := func(want uint64) {
		t.Helper()
		if got := s.recorder.Summary().Controllers[0].UserChanges; got != want {
			t.Errorf("%d changes by users are counted, want %d", got, want)
		}
	}
	wantChanges(3)
	// Labels count for nothing with other kinds either.
	object = s.changed(object, "kubectl-label", label(1))
	s.reconcile(nil)
	wantChanges(3)
	// The start of a deletion without finalizers is not visible.
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: object}, s.queue)
	s.reconcile(nil)
	wantChanges(4)
	// But one that was is not counted once more, and neither is one that follows from that of the owner.
	object.SetDeletionTimestamp(&metav1.Time{Time: s.clock.Now()})
	object.SetResourceVersion("1000")
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: object}, s.queue)
	s.reconcile(nil)
	object.SetDeletionTimestamp(nil)
	object.SetResourceVersion("1001")
	isController := true
	object.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Deployment", Name: "web", Controller: &isController}})
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: object}, s.queue)
	s.reconcile(nil)
	wantChanges(4)
}

// Of three events there is room for two, and the one that is not told may have been the one that matters.
func TestCausesThatAreNotKnownMayBeNews(t *testing.T) {
	s := newStage(t, Options{MaxCauses: 2})
	s.created(whytest.Web(), true)
	s.changed(whytest.Web(), "kubectl-label", label(1))
	s.created(pod("a"), true)
	s.wantFindings(s.reconcile(nil), "")

	s.created(whytest.Web(), false)
	s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		if _, err := s.writing(verbCreate, pod("a"), "7")(ctx); err != nil {
			return reconcile.Result{}, err
		}
		return s.writing(verbCreate, pod("b"), "8")(ctx)
	})
	a, b := pod("a"), pod("b")
	a.ResourceVersion, b.ResourceVersion = "7", "8"
	s.created(a, false)
	s.changed(whytest.Web(), "kubectl-label", label(2))
	s.created(b, false)
	r := s.reconcile(nil)
	s.wantFindings(r, "")
	s.wantCauses(r, "created Pod default/a (write of record 2); created Pod default/b (write of record 2)")
}

func TestWritesThatChangeNothingAreNoWork(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), true)
	r := s.reconcile(s.writing(verbUpdate, pod("a"), "1"))
	s.wantFindings(r, "noop")
	if r.Findings[0].Message != "nothing it reads has changed, and its writes changed nothing" {
		t.Errorf("it says %q", r.Findings[0].Message)
	}
}
