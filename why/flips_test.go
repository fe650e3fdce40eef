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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

// establish is how most objects begin, and is not watched for loops.
func (s *stage) establish(object client.Object) {
	s.Helper()
	s.created(object, false)
	for range peaceful {
		s.reconcile(nil)
	}
}

func TestLoopOfTwoWriters(t *testing.T) {
	s := newStage(t, Options{})
	object := client.Object(whytest.Web())
	s.establish(object)
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
	// It is over when it was not changed back for long enough.
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
		"by an unknown writer": {false, "labeller writes it, and an unknown writer reverts it"},
		"by its own writes":    {true, "labeller and controller web keep overwriting each other"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{})
			object := client.Object(whytest.Web())
			s.establish(object)
			var last *Record
			for range 3 {
				object = s.changed(object, "labeller", label("x"))
				write := func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, nil }
				if test.write {
					write = s.writing(verbUpdate, whytest.Web(), strconv.Itoa(s.version+1))
				}
				s.reconcile(write)
				object = s.changed(object, "", func(o client.Object) { o.SetLabels(nil) })
				last = s.reconcile(nil)
			}
			loops := slices.DeleteFunc(slices.Clone(last.Findings), func(f Finding) bool { return f.Type != Loop })
			if len(loops) != 1 || !strings.HasSuffix(loops[0].Message, test.message) || managers(loops[0].Writers) != "labeller" {
				t.Errorf("the findings are %+v", last.Findings)
			}
		})
	}
}

// TestLoopOfWhichOneSideIsSeen is a fight with a controller whose predicates drop the events of its own writes, so that it sees
// the same change again and again.
func TestLoopOfWhichOneSideIsSeen(t *testing.T) {
	s := newStage(t, Options{})
	s.establish(whytest.Web())
	for i := range 6 {
		object := s.changed(whytest.Web(), "kubectl", replicas(4))
		s.clock.Step(time.Second)
		r := s.reconcile(s.applying("web-controller", object, strconv.Itoa(1000+i)))
		// What follows from it in the status is not what they disagree about.
		s.changed(whytest.Web(), "kube-controller-manager", func(o client.Object) { o.(*appsv1.Deployment).Status.ReadyReplicas = 4 })
		s.wantFindings(s.reconcile(nil), "noop")
		if i < 2 {
			s.wantFindings(r, "")
			continue
		}
		s.wantFindings(r, "loop")
		f := r.Findings[0]
		if f.Path != "spec.replicas" || managers(f.Writers) != "web-controller, kubectl" ||
			f.Message != "spec.replicas of Deployment default/web goes back and forth between 3 and 4: controller web and kubectl keep overwriting each other" {
			t.Errorf("the loop is %+v", f)
		}
	}
}

// A status tells what goes on; that it goes back and forth is the consequence of something else.
func TestStatusOfOneWriterIsNoLoop(t *testing.T) {
	s := newStage(t, Options{})
	ready := func(n int32) func(client.Object) {
		return func(o client.Object) { o.(*appsv1.Deployment).Status.ReadyReplicas = n }
	}
	object := client.Object(whytest.Web())
	s.establish(object)
	for i := range 8 {
		object = s.changed(object, "kube-controller-manager", ready(int32(i%2)+1))
		s.wantFindings(s.reconcile(nil), "noop")
	}
	var last *Record
	for i := range 8 {
		object = s.changed(object, fmt.Sprint("writer-", i%2), ready(int32(i%2)+1))
		last = s.reconcile(nil)
	}
	s.wantFindings(last, "noop loop")
}

// A text that grows does not go back and forth, though what is shown of it stays the same; nor do bytes of the same number.
func TestValuesThatGrowAreNoLoop(t *testing.T) {
	s := newStage(t, Options{})
	object := client.Object(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "log", UID: "log", ResourceVersion: "1"}})
	s.establish(object)
	write := func(n int) *Record {
		object = s.changed(object, "logger", func(o client.Object) {
			o.(*corev1.ConfigMap).Data = map[string]string{"log": strings.Repeat("x", 200) + strconv.Itoa(n)}
			o.(*corev1.ConfigMap).BinaryData = map[string][]byte{"bytes": {byte(n), 2, 3}}
		})
		return s.reconcile(nil)
	}
	for i := range 8 {
		s.wantFindings(write(i), "")
	}
	// But those that do are recognised, however long they are.
	var last *Record
	for i := range 6 {
		last = write(100 + i%2)
	}
	s.wantFindings(last, "loop")
}

// TestLoopsOfOneObjectAreOne has several fields that the same two disagree about.
func TestLoopsOfOneObjectAreOne(t *testing.T) {
	s := newStage(t, Options{})
	object := client.Object(whytest.Web())
	s.establish(object)
	var last *Record
	for i := range 5 {
		object = s.changed(object, fmt.Sprint("writer-", i%2), func(o client.Object) {
			replicas(int32(i % 2))(o)
			o.SetLabels(map[string]string{"a": strconv.Itoa(i % 2), "b": strconv.Itoa(i % 2)})
		})
		last = s.reconcile(nil)
	}
	s.wantFindings(last, "loop")
	if message := last.Findings[0].Message; !strings.Contains(message, " and 2 more fields of Deployment default/web go back and forth") {
		t.Errorf("it says %q", message)
	}
	if total := s.recorder.Summary().Controllers[0]; total.Loops != 1 {
		t.Errorf("%d reconciles are part of a loop", total.Loops)
	}
}

// watched is how many fields are watched.
func (s *stage) watched() (number int) {
	s.recorder.readSettled(func() { number = s.recorder.store.flips })
	return number
}

func TestFlipsAreBounded(t *testing.T) {
	s := newStage(t, Options{MaxRecords: 2})
	s.establish(whytest.Web())
	for i := range 100 {
		s.changed(pod("a"), "", func(o client.Object) { o.SetLabels(map[string]string{fmt.Sprint("label", i): "x"}) })
		s.reconcile(nil)
	}
	if s.watched() != 8 {
		t.Errorf("%d fields are watched", s.watched())
	}
	s.clock.Step(time.Hour)
	s.changed(pod("a"), "", label("other"))
	s.reconcile(nil)
	if s.watched() != 1 {
		t.Errorf("%d fields are watched an hour later", s.watched())
	}
	s.run(5)
	if s.watched() != 0 {
		t.Errorf("%d fields are watched of nothing", s.watched())
	}
}
