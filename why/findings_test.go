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
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// writing is a reconciler that writes an object, which gets the version.
func (s *stage) writing(verb string, object client.Object, version string) func(context.Context) (reconcile.Result, error) {
	return func(ctx context.Context) (reconcile.Result, error) {
		object = object.DeepCopyObject().(client.Object)
		err := s.recorder.write(ctx, asking{verb: verb}, object, func(context.Context) error {
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
		"the first list":        {func(s *stage) { s.created(web(), true) }, true},
		"a resync":              {func(s *stage) { s.updated(web(), web()) }, true},
		"its own status":        {func(s *stage) { s.changed(web(), "x", status) }, true},
		"nothing but a version": {func(s *stage) { s.changed(web(), "x", func(client.Object) {}) }, true},
		"its spec":              {func(s *stage) { s.changed(web(), "x", replicas(1)) }, false},
		"its label":             {func(s *stage) { s.changed(web(), "x", label(1)) }, false},
		"the status of another": {func(s *stage) {
			s.changed(pod("a"), "x", func(o client.Object) { o.(*corev1.Pod).Status.Phase = "Running" })
		}, false},
		"a new object":         {func(s *stage) { s.created(pod("a"), false) }, false},
		"a resync and another": {func(s *stage) { s.updated(web(), web()); s.created(pod("a"), false) }, false},
		"an unread field":      {func(s *stage) { s.controller.Reads(pod("a"), "status"); s.changed(pod("a"), "x", label(1)) }, true},
		"a field that is read": {func(s *stage) { s.controller.Reads(pod("a"), "metadata.labels"); s.changed(pod("a"), "x", label(1)) }, false},
		"a field within one":   {func(s *stage) { s.controller.Reads(pod("a"), "metadata"); s.changed(pod("a"), "x", label(1)) }, false},
		"the begin of a deletion": {func(s *stage) {
			s.changed(web(), "x", func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)}) })
		}, false},
		"nobody knows what it was": {func(*stage) {}, false},
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
	s.created(web(), false)
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
	s.created(web(), false)
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
	s.created(web(), false)
	writer := s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		object := pod("a")
		return reconcile.Result{}, s.recorder.write(ctx, asking{verb: verbCreate}, object, func(context.Context) error {
			object.ResourceVersion = "7"
			s.created(object, false)
			other.Handler(sameRequest).Create(ctx, event.CreateEvent{Object: object}, s.queue)
			return nil
		})
	})
	s.wantFindings(s.reconcile(nil), "self-inflicted noop")

	// Whoever else is woken by it knows as well which write it was, but has not done it.
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
	s.created(web(), false)
	s.reconcile(s.writing(verbUpdate, web(), "101"))
	object := client.Object(web())
	s.version = 100
	for i := range 5 {
		object = s.changed(object, "web-controller", label(i))
		r := s.reconcile(s.writing(verbUpdate, web(), strconv.Itoa(102+i)))
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
	if len(lines) != 1 || !strings.Contains(lines[0], "Loop") {
		t.Errorf("the log says %q", lines)
	}
	s.created(web(), false)
	s.reconcile(s.writing(verbUpdate, web(), "107"))
	s.changed(web(), "web-controller", label(7)) // 106, which is known, but not owed to it alone
	s.created(pod("a"), false)
	s.wantFindings(s.reconcile(nil), "")
}

func TestLoopOfTwoWriters(t *testing.T) {
	s := newStage(t, Options{})
	object := client.Object(web())
	s.created(object, false)
	s.reconcile(nil)
	for i := range 6 {
		manager, value := "autoscaler", int32(5)
		if i%2 == 1 {
			manager, value = "deployer", 3
		}
		object = s.changed(object, manager, replicas(value))
		r := s.reconcile(s.writing(verbUpdate, pod("b"), "77"))
		if i < 3 {
			s.wantFindings(r, "")
			continue
		}
		s.wantFindings(r, "loop")
		f := r.Findings[0]
		if f.Path != "spec.replicas" || len(f.Writers) != 2 || !strings.Contains(f.Message, "autoscaler") || !strings.Contains(f.Message, "deployer") {
			t.Errorf("the loop is %+v", f)
		}
	}
	// It is over when nobody has turned it back for long enough.
	s.clock.Step(2 * time.Minute)
	object = s.changed(object, "autoscaler", replicas(5))
	s.wantFindings(s.reconcile(nil), "")
	// Neither is one that goes on.
	for i := range 6 {
		object = s.changed(object, "deployer", replicas(int32(10+i)))
		s.wantFindings(s.reconcile(nil), "")
	}
}

// TestLoopOfRemovals is about a label that comes and goes, and managed fields tell only who sets it.
func TestLoopOfRemovals(t *testing.T) {
	tests := map[string]struct {
		write   bool // it is the reconciler that removes it
		message string
	}{
		"by somebody unknown": {false, "labeller writes it, and somebody unknown takes it back"},
		"by its own writes":   {true, "labeller and the controller web disagree"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{})
			object := client.Object(web())
			s.created(object, false)
			s.reconcile(nil)
			var last *Record
			for range 3 {
				object = s.changed(object, "labeller", label("x"))
				write := func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, nil }
				if test.write {
					write = s.writing(verbUpdate, web(), strconv.Itoa(s.version+1))
				}
				s.reconcile(write)
				object = s.changed(object, "", func(o client.Object) { o.SetLabels(nil) })
				last = s.reconcile(nil)
			}
			loops := slices.DeleteFunc(last.Findings, func(f Finding) bool { return f.Type != Loop })
			if len(loops) != 1 || !strings.HasSuffix(loops[0].Message, test.message) || managers(loops[0].Writers) != "labeller" {
				t.Errorf("the findings are %+v", last.Findings)
			}
		})
	}
}

func TestAmplification(t *testing.T) {
	s := newStage(t, Options{})
	s.created(web(), true)
	s.reconcile(nil)
	object := s.changed(web(), "kubectl", replicas(1))
	s.reconcile(s.writing(verbUpdate, pod("a"), "50"))
	// What follows from it.
	s.changed(object, "kube-controller-manager", func(o client.Object) { o.(*appsv1.Deployment).Status.ReadyReplicas = 1 })
	s.reconcile(s.writing(verbUpdate, object, "51"))
	s.version = 50
	object = s.changed(object, "web-controller", replicas(1))
	s.reconcile(nil)
	// Known as one of ours from then on, also where nobody saw the write.
	s.changed(object, "web-controller", replicas(2))
	s.reconcile(nil)
	// Somebody changes a child by hand.
	s.changed(pod("a"), "kubectl-edit", label(1))
	s.reconcile(s.writing(verbUpdate, pod("a"), "52"))
	total := s.recorder.Summary().Controllers[0]
	if total.UserChanges != 2 || total.ReconcilesPerChange != 2.5 || total.WritesPerChange != 1.5 {
		t.Errorf("the total is %+v", total)
	}
}

func TestFlipsAreBounded(t *testing.T) {
	s := newStage(t, Options{MaxRecords: 2})
	s.created(web(), false)
	s.reconcile(nil)
	for i := range 100 {
		s.changed(pod("a"), "", func(o client.Object) { o.SetLabels(map[string]string{fmt.Sprint("label", i): "x"}) })
		s.reconcile(nil)
	}
	if s.recorder.store.flips != 8 {
		t.Errorf("%d fields are watched", s.recorder.store.flips)
	}
	s.clock.Step(time.Hour)
	s.changed(pod("a"), "", label("other"))
	s.reconcile(nil)
	if s.recorder.store.flips != 1 {
		t.Errorf("%d fields are watched an hour later", s.recorder.store.flips)
	}
	s.run(5)
	if s.recorder.store.flips != 0 {
		t.Errorf("%d fields are watched of nothing", s.recorder.store.flips)
	}
}
