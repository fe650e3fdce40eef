// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

// applying is a reconciler that applies an object under the name of a manager, and is answered with a version.
func (s *stage) applying(manager string, object client.Object, version string) func(context.Context) (reconcile.Result, error) {
	return func(ctx context.Context) (reconcile.Result, error) {
		answer := object.DeepCopyObject().(client.Object)
		answer.SetResourceVersion("")
		return reconcile.Result{}, s.write(ctx, verbApply, manager, answer, func() error {
			answer.SetResourceVersion(version)
			return nil
		})
	}
}

// An operator that applies its child in each reconcile, which changes nothing if another manager has changed another
// field of it. The server responds with the version of that manager.
func TestApplyThatChangesNothing(t *testing.T) {
	s := newStage(t, Options{})
	object := client.Object(pod("a"))
	s.created(whytest.Web(), false)
	s.reconcile(nil)
	for i := range 3 {
		object = s.changed(object, "kubectl-label", label(i))
		s.clock.Step(time.Second)
		r := s.reconcile(s.applying("web-controller", object, object.GetResourceVersion()))
		s.wantFindings(r, "")
		if r.Causes[0].Write != nil {
			t.Errorf("it was caused by record %d, and is record %d itself", r.Causes[0].Write.Record, r.ID)
		}
		if !r.Writes[0].NoChange {
			t.Errorf("the write is said to have changed something: %+v", r.Writes[0])
		}
	}
	if total := s.recorder.Summary().Controllers[0]; total.UserChanges != 4 || total.NoChange != 3 {
		t.Errorf("the total is %+v", total)
	}
}

// As above, but the write comes between the change and its event.
func TestApplyBeforeTheEventOfAnother(t *testing.T) {
	s := newStage(t, Options{})
	s.created(whytest.Web(), false)
	s.reconcile(s.applying("web-controller", pod("a"), strconv.Itoa(s.version+1)))
	s.clock.Step(time.Second)
	s.changed(pod("a"), "kubectl-label", label(1))
	r := s.reconcile(nil)
	s.wantFindings(r, "")
	if r.Causes[0].Write != nil {
		t.Error("what kubectl wrote is taken for the write of a reconcile")
	}
	// Whereas this one is.
	s.created(whytest.Web(), false)
	written := s.reconcile(s.applying("web-controller", pod("a"), strconv.Itoa(s.version+1)))
	s.changed(pod("a"), "web-controller", label(2))
	r = s.reconcile(nil)
	s.wantFindings(r, "self-inflicted noop")
	if ref := r.Causes[0].Write; ref == nil || ref.Record != written.ID {
		t.Errorf("the write is %+v", ref)
	}
}

// Removing the last finalizer of an object that is being deleted removes it; the response has the previous version.
func TestRemovalOfTheLastFinalizer(t *testing.T) {
	s := newStage(t, Options{})
	leaving := pod("a")
	leaving.Finalizers = []string{"example.com/a"}
	began := s.changed(leaving, "", func(o client.Object) { o.SetDeletionTimestamp(&metav1.Time{Time: s.clock.Now()}) })
	r := s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		object := began.DeepCopyObject().(client.Object)
		return reconcile.Result{}, s.write(ctx, verbPatch, "", object, func() error {
			object.SetFinalizers(nil)
			return nil
		})
	})
	s.wantFindings(r, "")
	if r.Writes[0].NoChange || r.Causes[0].Write != nil {
		t.Errorf("the write is %+v and the cause %+v", r.Writes[0], r.Causes[0])
	}
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: began}, s.queue)
	gone := s.reconcile(nil)
	s.wantFindings(gone, "self-inflicted noop")
	if ref := gone.Causes[0].Write; ref == nil || ref.Record != r.ID {
		t.Errorf("the write is %+v", ref)
	}
}

// A pod that has some time left to end is not ended by a write that changes nothing.
func TestGracePeriodIsNoEnd(t *testing.T) {
	object, grace := pod("a"), int64(30)
	object.DeletionTimestamp, object.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(1, 0)}, &grace
	if hasEnded(object) {
		t.Error("it has ended with its grace period before it")
	}
	grace = 0
	if !hasEnded(object) {
		t.Error("it has not ended after its grace period")
	}
}

// A namespace that is being deleted is not ended by a write as long as it has finalizers in its spec.
func TestTerminatingNamespaceIsNoEnd(t *testing.T) {
	answer := func(finalizers ...corev1.FinalizerName) *corev1.Namespace {
		return &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "7", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}},
			Spec:       corev1.NamespaceSpec{Finalizers: finalizers},
		}
	}
	for name, test := range map[string]struct {
		namespace *corev1.Namespace
		ended     bool
	}{
		"not empty": {answer(corev1.FinalizerKubernetes), false},
		"empty":     {answer(), true},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.namespace)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range []client.Object{test.namespace, &unstructured.Unstructured{Object: content}} {
			s := newStage(t, Options{})
			s.created(whytest.Web(), false)
			s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
				return reconcile.Result{}, s.write(ctx, verbPatch, "", object, func() error { return nil })
			})
			if _, ended := s.recorder.echoes.written[echoKey{"u", finalized}]; ended != test.ended {
				t.Errorf("%s: it has ended by %T: %t", name, object, ended)
			}
		}
		for kind, encoder := range map[string]runtime.Encoder{
			runtime.ContentTypeJSON:     jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, nil, nil, jsonserializer.SerializerOptions{}),
			runtime.ContentTypeProtobuf: protobuf.NewSerializer(nil, nil),
		} {
			var body bytes.Buffer
			if err := encoder.Encode(test.namespace, &body); err != nil {
				t.Fatal(err)
			}
			response := &http.Response{Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(&body)}
			if ended := readAnswer(response, &Write{Verb: verbPatch}); ended != test.ended {
				t.Errorf("%s: it has ended by %s: %t", name, kind, ended)
			}
		}
	}
}

func TestDeletionByName(t *testing.T) {
	s := newStage(t, Options{})
	object := func(uid string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", UID: types.UID(uid), ResourceVersion: "1" + uid, CreationTimestamp: metav1.NewTime(s.clock.Now()),
		}}
		o.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Pod"))
		return o
	}
	gone := func(o client.Object) *Record {
		s.handler.Delete(t.Context(), event.DeleteEvent{Object: o}, s.queue)
		return s.reconcile(nil)
	}
	first := object("1")
	s.created(whytest.Web(), false)
	s.clock.Step(time.Second)
	byName := object("")
	s.reconcile(s.writing(verbDelete, byName, ""))
	s.wantFindings(gone(first), "self-inflicted noop")
	s.wantFindings(gone(object("2")), "")

	// A deletion whose event is missed does not belong to an object that is created later.
	s.created(whytest.Web(), false)
	s.reconcile(s.writing(verbDelete, byName, ""))
	s.clock.Step(time.Minute)
	s.wantFindings(gone(object("3")), "")
}

// partServer takes what is sent to a subresource, and answers in it with the version of the object.
type partServer struct {
	client.SubResourceClient
	version string
}

func (p partServer) Update(_ context.Context, object client.Object, opts ...client.SubResourceUpdateOption) error {
	body := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts).SubResourceBody
	body.SetUID(object.GetUID())
	body.SetResourceVersion(p.version)
	return nil
}

func (p partServer) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return nil
}

func (s *stage) part(name, version string) client.SubResourceClient {
	return &subresourceClient{SubResourceClient: partServer{version: version}, recorder: s.recorder, name: name, manager: "web-controller"}
}

// The object itself stays as it was sent, so only the answer says whether anything changed.
func TestScaling(t *testing.T) {
	for version, noChange := range map[string]bool{"2": false, "1": true} {
		s := newStage(t, Options{})
		object := pod("a")
		s.created(whytest.Web(), false)
		r := s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
			return reconcile.Result{}, s.part("scale", version).Update(ctx, object, client.WithSubResourceBody(&autoscalingv1.Scale{}))
		})
		if w := r.Writes[0]; w.NoChange != noChange || w.ResourceVersion != version {
			t.Errorf("the write that makes version %s of 1 is %+v", version, w)
		}
		if noChange {
			continue
		}
		s.changed(object, "web-controller", label(1))
		s.wantFindings(s.reconcile(nil), "self-inflicted noop")
	}
}

func TestEviction(t *testing.T) {
	s := newStage(t, Options{})
	object := pod("a")
	s.created(whytest.Web(), false)
	s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		return reconcile.Result{}, s.part("eviction", "").Create(ctx, object, &policyv1.Eviction{})
	})
	// It has not made the version that it was sent for.
	s.created(object, false)
	s.wantCauses(s.reconcile(nil), "created Pod default/a")
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: object}, s.queue)
	s.wantCauses(s.reconcile(nil), "deleted Pod default/a (write of record 1)")
}

func TestWritesBeyondTheRecordAreCounted(t *testing.T) {
	s := newStage(t, Options{MaxWrites: 2})
	s.created(whytest.Web(), false)
	s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		for i := range 5 {
			if _, err := s.writing(verbUpdate, pod("a"), strconv.Itoa(100+i/2))(ctx); err != nil {
				return reconcile.Result{}, err
			}
		}
		return reconcile.Result{}, nil
	})
	if total := s.recorder.Summary().Controllers[0]; total.Writes != 5 || total.NoChange != 2 {
		t.Errorf("the total is %+v", total)
	}
	s.recorder.readSettled(func() {
		if written := s.controller.totals.writes[writeKind{verbUpdate, "Pod"}]; written != 5 {
			t.Errorf("%d updates of pods are counted", written)
		}
	})
}
