// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newStage(t, Options{Registerer: registry})
	s.created(whytest.Web(), true)
	s.reconcile(nil)
	s.created(pod("a"), false)
	s.created(pod("b"), false)
	s.reconcile(s.writing(verbCreate, pod("c"), "5"))
	// Another one of the same name, as after a restart of a manager.
	s.recorder.Controller("web", &corev1.Pod{})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			words := []string{family.GetName()}
			for _, label := range metric.GetLabel() {
				words = append(words, label.GetValue())
			}
			got[strings.Join(words, " ")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"why_causes_total created web Pod": 2, "why_causes_total listed web Deployment": 1,
		"why_findings_total web loop": 0, "why_findings_total web noop": 1, "why_findings_total web self-inflicted": 0,
		"why_folded_events_total web": 1, "why_filtered_events_total web": 0, "why_reconciles_total web succeeded": 2,
		"why_writes_total web Pod create": 1, "why_user_changes_total web": 0, "why_wait_seconds web": 2, "why_dropped_total records": 0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestSpans(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	s := newStage(t, Options{TracerProvider: provider})
	s.created(whytest.Web(), false)
	s.reconcile(s.writing(verbCreate, pod("a"), "7"))
	echo := pod("a")
	echo.ResourceVersion = "7"
	s.created(echo, false)
	s.reconcile(func(context.Context) (reconcile.Result, error) { return reconcile.Result{}, errors.New("broken") })
	ended := spans.Ended()
	if len(ended) != 2 || ended[0].Name() != "reconcile web" || len(ended[0].Events()) != 1 {
		t.Fatalf("there are %d spans", len(ended))
	}
	if links := ended[1].Links(); len(links) != 1 || links[0].SpanContext.SpanID() != ended[0].SpanContext().SpanID() {
		t.Errorf("the second is linked to %v", links)
	}
	if status := ended[1].Status(); status.Description != "broken" {
		t.Errorf("the second ended with %v", status)
	}
	// A caller's span does not make one trace of all reconciles.
	s.created(whytest.Web(), false)
	outer, span := provider.Tracer("caller").Start(t.Context(), "outer")
	if _, err := s.controller.Reconciler(&fakeReconciler{}).Reconcile(outer, request); err != nil {
		t.Fatal(err)
	}
	if own := spans.Ended()[2]; own.Parent().IsValid() || own.SpanContext().TraceID() == span.SpanContext().TraceID() {
		t.Errorf("it is a part of the trace of its caller: %v", own.Parent())
	}
	spans.Reset()
	// What the reconciler traces itself is a part of it.
	s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		_, span := provider.Tracer("reconciler").Start(ctx, "inner")
		span.End()
		return reconcile.Result{}, nil
	})
	ended = spans.Ended()
	if inner, outer := ended[0], ended[1]; inner.Parent().SpanID() != outer.SpanContext().SpanID() || outer.Parent().IsValid() {
		t.Errorf("the parents are %v and %v", inner.Parent(), outer.Parent())
	}
}

func TestLogLines(t *testing.T) {
	var lines []string
	s := newStage(t, Options{Logger: funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1})})
	s.changed(whytest.Web(), "kubectl", replicas(1))
	s.reconcile(nil)
	if len(lines) != 1 || !strings.Contains(lines[0], "updated Deployment default/web spec.replicas 3→1 by kubectl") {
		t.Errorf("the log says %q", lines)
	}
	s.updated(whytest.Web(), whytest.Web())
	s.reconcile(nil)
	if len(lines) != 2 || !strings.Contains(lines[1], `"findings"=["noop"]`) {
		t.Errorf("the log says %q", lines)
	}
}

// However many loops there are, the log gets each of them once in a while at most.
func TestLoopsAreReportedOnce(t *testing.T) {
	var told loops
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	count := func(at time.Time) (number int) {
		for i := range 2000 {
			if told.isNew(objectKey{name: strconv.Itoa(i)}, "spec", at, time.Minute) {
				number++
			}
		}
		return number
	}
	if number := count(start); number < 1000 || number > 2000 {
		t.Errorf("%d loops are told", number)
	}
	if number := count(start.Add(time.Second)); number != 0 {
		t.Errorf("%d loops are told again", number)
	}
	if number := count(start.Add(time.Minute)); number < 1000 {
		t.Errorf("only %d loops are told a minute later", number)
	}
}

func TestClient(t *testing.T) {
	s := newStage(t, Options{})
	c := s.recorder.Client(fake.NewClientBuilder().WithStatusSubresource(&appsv1.Deployment{}).Build())
	if _, watches := c.(client.WithWatch); !watches {
		t.Error("the client cannot watch any more")
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	deployment := whytest.Web()
	deployment.ResourceVersion = ""
	s.created(whytest.Web(), false)
	r := s.reconcile(func(ctx context.Context) (reconcile.Result, error) {
		s.must(c.Create(ctx, deployment))
		s.must(c.Create(ctx, config))
		s.must(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dry"}}, client.DryRunAll))
		before := config.DeepCopy()
		config.Data = map[string]string{"a": "b"}
		s.must(c.Patch(ctx, config, client.MergeFrom(before)))
		s.must(c.Update(ctx, config))
		deployment.Status.Replicas = 1
		s.must(c.Status().Update(ctx, deployment))
		s.must(c.Apply(ctx, applycorev1.ConfigMap("applied", "default").WithData(map[string]string{"a": "b"}), client.FieldOwner("me")))
		s.must(c.Delete(ctx, config))
		s.must(c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default")))
		if err := c.Delete(ctx, pod("none")); err == nil {
			t.Error("it was there")
		}
		s.must(c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment))
		return reconcile.Result{}, nil
	})
	want := []string{
		"create Deployment web", "create ConfigMap c", "patch ConfigMap c", "update ConfigMap c", "update Deployment web status",
		"apply ConfigMap applied", "delete ConfigMap c", "deletecollection ConfigMap", "delete Pod none failed",
	}
	var got []string
	for _, w := range r.Writes {
		text := strings.Join(strings.Fields(w.Verb+" "+w.Object.Kind+" "+w.Object.Name+" "+w.Subresource), " ")
		if w.Error != "" {
			text += " failed"
		}
		got = append(got, text)
		if w.Error == "" && !strings.HasPrefix(w.Verb, "delete") && w.ResourceVersion == "" {
			t.Errorf("the version of %s is not known", text)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("the writes are %q, want %q", got, want)
	}
	// What no reconcile does is not recorded, but done.
	s.must(c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}))
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Error(err)
	}
}

func TestWriteOfARequest(t *testing.T) {
	for _, test := range []struct{ method, path, kind, want string }{
		{http.MethodPost, "/api/v1/namespaces/default/pods", "", "create pods default/"},
		{http.MethodPut, "/apis/apps/v1/namespaces/default/deployments/web/status", "", "update deployments.apps default/web status"},
		{http.MethodPatch, "/prefix/apis/apps/v1/namespaces/default/deployments/web", "application/apply-patch+yaml", "apply deployments.apps default/web"},
		{http.MethodPatch, "/api/v1/nodes/n", "application/merge-patch+json", "patch nodes /n"},
		{http.MethodDelete, "/api/v1/namespaces/default", "", "delete namespaces /default"},
		{http.MethodDelete, "/api/v1/namespaces/default/pods", "", "deletecollection pods default/"},
		{http.MethodGet, "/api/v1/namespaces/default/pods", "", ""},
		{http.MethodPost, "/api/v1/namespaces/default/pods?dryRun=All", "", ""},
		{http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "", ""},
		{http.MethodPost, "/healthz", "", ""},
		{http.MethodPut, "/api/v1/namespaces/x/finalize", "", "update namespaces /x finalize"},
		{http.MethodPatch, "/api/v1/namespaces/x/status", "", "patch namespaces /x status"},
		{http.MethodPatch, "/apis/apps/v1/namespaces/x/deployments/status", "", "patch deployments.apps x/status"},
		{http.MethodPost, "/api/v1/namespaces/x/pods/a/eviction", "", "create Pod x/a eviction"},
		{http.MethodPost, "/api/v1/namespaces/x/pods/a/exec", "", ""},
		{http.MethodPost, "/api/v1/namespaces/x/services/a/proxy/some/where", "", ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), test.method, "https://server"+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", test.kind)
		got := ""
		if w, ok := writeOf(request); ok {
			got = w.Verb + " " + w.Object.Kind
			if w.Object.Group != "" {
				got += "." + w.Object.Group
			}
			got = strings.TrimSpace(got + " " + w.Object.Namespace + "/" + w.Object.Name + " " + w.Subresource)
		}
		if got != test.want {
			t.Errorf("%s %s is %q, want %q", test.method, test.path, got, test.want)
		}
	}
}
