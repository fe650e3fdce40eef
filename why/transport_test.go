// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// endless is a body of which more can be read than there is memory.
type endless struct{ read, closed int }

func (e *endless) Read(into []byte) (int, error) {
	for i := range into {
		into[i] = ' '
	}
	e.read += len(into)
	return len(into), nil
}

func (e *endless) Close() error {
	e.closed++
	return nil
}

// send asks for something through a transport that is answered with a body.
func (s *stage) send(method, address, kind string, body io.ReadCloser, see func(*http.Response)) *Record {
	s.Helper()
	transport := s.recorder.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: body}, nil
	}))
	s.created(whytest.Web(), false)
	return s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		request, err := http.NewRequestWithContext(ctx, method, "https://server/api/v1/namespaces/default/"+address+"?fieldManager=me", http.NoBody)
		if err != nil {
			return reconcile.Result{}, err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return reconcile.Result{}, err
		}
		see(response)
		return reconcile.Result{}, response.Body.Close()
	})
}

func TestAnswersAreReadAgain(t *testing.T) {
	const answer = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"7"}}`
	s := newStage(t, Options{})
	r := s.send(http.MethodPut, "pods/a", "application/json", io.NopCloser(strings.NewReader(answer)), func(response *http.Response) {
		if data, err := io.ReadAll(response.Body); err != nil || string(data) != answer {
			t.Errorf("the answer is %q, %v", data, err)
		}
	})
	if w := r.Writes[0]; w.Object.UID != "u" || w.ResourceVersion != "7" || w.Manager != "me" {
		t.Errorf("the write is %+v", w)
	}
}

func TestAnswersWithoutEndAreNotKept(t *testing.T) {
	for kind, most := range map[string]int{"application/json": maxAnswer, "text/plain": 0} {
		body := &endless{}
		s := newStage(t, Options{})
		r := s.send(http.MethodPut, "pods/a", kind, body, func(response *http.Response) {
			if body.read > most {
				t.Errorf("%s: %d bytes were read too early", kind, body.read)
			}
			// The reader gets all of it.
			if n, err := io.CopyN(io.Discard, response.Body, 2*maxAnswer); n != 2*maxAnswer {
				t.Errorf("%s: only %d bytes can be read: %v", kind, n, err)
			}
		})
		if body.closed != 1 {
			t.Errorf("%s: the body was closed %d times", kind, body.closed)
		}
		if w := r.Writes[0]; w.Object.Kind != "pods" || w.Object.Name != "a" {
			t.Errorf("%s: the write is %+v", kind, w)
		}
	}
}

// The answer to most deletions is a Status, whose details say which object it was.
func TestDeletionsThroughATransport(t *testing.T) {
	status := &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{Name: "a", Kind: "pods", UID: "uid-a"}}
	status.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("Status"))
	for kind, encoder := range map[string]runtime.Encoder{
		runtime.ContentTypeJSON:     jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, nil, nil, jsonserializer.SerializerOptions{}),
		runtime.ContentTypeProtobuf: protobuf.NewSerializer(nil, nil),
	} {
		for address, method := range map[string]string{"pods/a": http.MethodDelete, "pods/a/eviction": http.MethodPost} {
			var body bytes.Buffer
			if err := encoder.Encode(status, &body); err != nil {
				t.Fatal(err)
			}
			s := newStage(t, Options{})
			r := s.send(method, address, kind, io.NopCloser(&body), func(*http.Response) {})
			if r.Written != 1 || r.Writes[0].Error != "" {
				t.Errorf("%s %s: the writes are %+v", method, address, r.Writes)
			}
			s.handler.Delete(t.Context(), event.DeleteEvent{Object: pod("a")}, s.queue)
			s.wantCauses(s.reconcile(nil), "deleted Pod default/a (write of record 1)")
		}
	}
}

// Deletions and evictions request a dry run in their bodies.
func TestDryRunsThroughATransport(t *testing.T) {
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	dry.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
	eviction := &policyv1.Eviction{DeleteOptions: &dry}
	eviction.SetGroupVersionKind(policyv1.SchemeGroupVersion.WithKind("Eviction"))
	wet := &metav1.DeleteOptions{TypeMeta: dry.TypeMeta, PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
	for _, encoder := range []runtime.Encoder{
		jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, nil, nil, jsonserializer.SerializerOptions{}), protobuf.NewSerializer(nil, nil),
	} {
		for _, one := range []struct {
			method, path string
			body         runtime.Object
			want         bool
		}{
			{http.MethodDelete, "pods/a", &dry, true},
			{http.MethodDelete, "pods", &dry, true},
			{http.MethodPost, "pods/a/eviction", eviction, true},
			{http.MethodDelete, "pods/a", wet, false},
			{http.MethodPost, "pods", &dry, false}, // no field of a pod has this meaning
		} {
			var body bytes.Buffer
			if err := encoder.Encode(one.body, &body); err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), one.method, "https://server/api/v1/namespaces/default/"+one.path, &body)
			if err != nil {
				t.Fatal(err)
			}
			w, _ := writeOf(request)
			if got := w.isDryRun(request); got != one.want {
				t.Errorf("%s %s %T: a dry run is %t", one.method, one.path, one.body, got)
			}
			if left, err := io.ReadAll(request.Body); err != nil || len(left) == 0 {
				t.Errorf("the body was read: %q, %v", left, err)
			}
		}
	}
	s := newStage(t, Options{})
	s.created(whytest.Web(), false)
	transport := s.recorder.Transport(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}))
	r := s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodDelete, "https://server/api/v1/namespaces/default/pods/a", strings.NewReader(`{"dryRun":["All"]}`))
		if err != nil {
			return reconcile.Result{}, err
		}
		response, err := transport.RoundTrip(request)
		if err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{}, response.Body.Close()
	})
	if r.Written != 0 {
		t.Errorf("the writes are %+v", r.Writes)
	}
}

// The response to an eviction does not contain the pod.
func TestEvictionThroughATransport(t *testing.T) {
	s := newStage(t, Options{})
	answer := io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`))
	s.send(http.MethodPost, "pods/a/eviction", runtime.ContentTypeJSON, answer, func(*http.Response) {})
	s.handler.Delete(t.Context(), event.DeleteEvent{Object: pod("a")}, s.queue)
	s.wantCauses(s.reconcile(nil), "deleted Pod default/a (write of record 1)")
}
