// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kappv1 "github.com/opdock/opdock/api/kapp/v1"
	robotv1 "github.com/opdock/opdock/api/robot/v1"
	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/testenv"
)

func TestWhetherSpansAreExported(t *testing.T) {
	const endpoint, forTraces = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	const protocol, tracesProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	for name, test := range map[string]struct {
		variables map[string]string
		want      traceProtocol
		wantErr   string
	}{
		"nothing is set":           {nil, noTraces, ""},
		"a protocol to nowhere":    {map[string]string{protocol: "grpc"}, noTraces, ""},
		"an endpoint":              {map[string]string{endpoint: "http://collector:4318"}, httpProtobuf, ""},
		"an endpoint for traces":   {map[string]string{forTraces: "http://collector:4318/v1/traces"}, httpProtobuf, ""},
		"gRPC":                     {map[string]string{endpoint: "http://collector:4317", protocol: "grpc"}, grpcProtobuf, ""},
		"gRPC for traces":          {map[string]string{endpoint: "http://c", protocol: "http/protobuf", tracesProtocol: "grpc"}, grpcProtobuf, ""},
		"turned off":               {map[string]string{endpoint: "http://c", "OTEL_SDK_DISABLED": "TRUE"}, noTraces, ""},
		"no exporter":              {map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "none"}, noTraces, ""},
		"OTLP by name":             {map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "otlp"}, httpProtobuf, ""},
		"another exporter":         {map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "zipkin"}, noTraces, `OTEL_TRACES_EXPORTER is "zipkin"`},
		"a protocol that is not":   {map[string]string{endpoint: "http://c", protocol: "http/json"}, noTraces, protocol + ` is "http/json"; use http/protobuf or grpc`},
		"one of traces that isn't": {map[string]string{endpoint: "http://c", tracesProtocol: "x"}, noTraces, tracesProtocol + ` is "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tracesFrom(func(name string) string { return test.variables[name] })
			if got != test.want || (err == nil) != (test.wantErr == "") || err != nil && !strings.Contains(err.Error(), test.wantErr) {
				t.Errorf("%q, %v; want %q, %q", got, err, test.want, test.wantErr)
			}
		})
	}
}

// receiver is a collector that keeps what it gets by OTLP over HTTP.
type receiver struct {
	*httptest.Server
	mutex    sync.Mutex
	spans    []*tracepb.Span
	services []string
}

// newReceiver answers nothing until the gate is closed, if there is one.
func newReceiver(t *testing.T, gate <-chan struct{}) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if gate != nil {
			<-gate
		}
		if err := r.receive(request); err != nil {
			t.Errorf("%s %s: %v", request.Method, request.URL, err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) receive(request *http.Request) error {
	var body io.Reader = request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var batch collectorpb.ExportTraceServiceRequest
	if err := proto.Unmarshal(data, &batch); err != nil {
		return err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, of := range batch.GetResourceSpans() {
		r.services = append(r.services, texts(of.GetResource().GetAttributes(), "service.name")...)
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	return nil
}

// find returns the first span of a name whose attribute has a text, or a part of one of several.
func (r *receiver) find(t *testing.T, name, attribute, part string) *tracepb.Span {
	t.Helper()
	var seen []string
	for _, span := range r.spans {
		values := texts(span.GetAttributes(), attribute)
		seen = append(seen, span.GetName()+": "+strings.Join(values, "; "))
		if span.GetName() == name && slices.ContainsFunc(values, func(value string) bool { return strings.Contains(value, part) }) {
			return span
		}
	}
	t.Fatalf("no span %q has %s with %q; there are\n%s", name, attribute, part, strings.Join(seen, "\n"))
	return nil
}

func texts(attributes []*commonpb.KeyValue, key string) (values []string) {
	for _, attribute := range attributes {
		if attribute.GetKey() != key {
			continue
		}
		if list := attribute.GetValue().GetArrayValue(); list != nil {
			for _, value := range list.GetValues() {
				values = append(values, value.GetStringValue())
			}
			continue
		}
		values = append(values, attribute.GetValue().GetStringValue())
	}
	return values
}

// TestSpansReachACollector runs the manager as the program does, with nothing but a variable of OpenTelemetry.
func TestSpansReachACollector(t *testing.T) {
	fleettest.Config(t) // installs the kinds
	collector := newReceiver(t, nil)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	// Nothing is sent before the end, which has to send all.
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2048")
	namespace := clustertest.Namespace(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	var log testenv.Buffer
	go func() {
		ended <- Run(ctx, []string{"--kubeconfig", clustertest.Shared(t).Kubeconfig(), "--namespaces", namespace, "--kinds=kapp,robot"}, os.Getenv, io.Discard, &log)
	}()
	user := client.WithFieldOwner(fleettest.Client(t), "somebody")
	// What there is before the controller of Robots watches them is listed, and not created by a write.
	probe := fleettest.Create(t, user, namespace, "{metadata: {name: probe}, spec: {deploymentName: probe, replicas: 0}}", &robotv1.Robot{})
	fleettest.Await(t, user, probe, func(probe *robotv1.Robot) string { return fleettest.Ready(probe.Status.Conditions, probe.Generation) })
	ready := func(app *kappv1.KAPP) string { return fleettest.Ready(app.Status.Conditions, app.Generation) }
	app := fleettest.Create(t, user, namespace, `
metadata: {name: whole}
spec:
  components:
  - name: part
    resource: {apiVersion: robot.llleon.io/v1, kind: Robot, metadata: {name: part}, spec: {deploymentName: part, replicas: 1}}
`, &kappv1.KAPP{})
	app = fleettest.Await(t, user, app, ready)
	// The second change is observed after the reconcile of the first one has ended, so the stop does not interrupt that.
	for _, change := range []string{`{"spec": {"suspend": true}}`, `{"spec": {"suspend": false}}`} {
		if err := user.Patch(t.Context(), app, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
			t.Fatal(err)
		}
		fleettest.Await(t, user, app, func(app *kappv1.KAPP) string {
			if app.Status.ObservedGeneration != app.Generation {
				return "it has not seen the change"
			}
			return ""
		})
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, log.String())
	}

	collector.mutex.Lock()
	defer collector.mutex.Unlock()
	if len(collector.services) == 0 || collector.services[0] != "opdock-manager" {
		t.Errorf("the services are %q", collector.services)
	}
	created := collector.find(t, "reconcile kapp", "why.causes", " KAPP "+namespace+"/whole")
	if len(created.GetParentSpanId()) > 0 || created.GetEndTimeUnixNano() < created.GetStartTimeUnixNano() || created.GetKind() != tracepb.Span_SPAN_KIND_CONSUMER {
		t.Errorf("the span of the creation is %v", created)
	}
	if !slices.ContainsFunc(created.GetEvents(), func(e *tracepb.Span_Event) bool {
		return e.GetName() == "write" && slices.Contains(texts(e.GetAttributes(), "why.object"), "Robot "+namespace+"/part")
	}) {
		t.Errorf("the creation has written %v", created.GetEvents())
	}
	// The write of the one led to the other.
	part := collector.find(t, "reconcile robot", "why.causes", "created Robot "+namespace+"/part by opdock-kapp (write of record")
	if !slices.ContainsFunc(part.GetLinks(), func(link *tracepb.Span_Link) bool {
		return string(link.GetSpanId()) == string(created.GetSpanId()) && string(link.GetTraceId()) == string(created.GetTraceId())
	}) {
		t.Errorf("the links of the component's reconcile are %v, and the span of its creation %x", part.GetLinks(), created.GetSpanId())
	}
	changed := collector.find(t, "reconcile kapp", "why.causes", "updated KAPP "+namespace+"/whole spec.suspend false→true by somebody")
	for attribute, want := range map[string]string{
		"why.fields": "spec.suspend", "why.writers": "somebody", "why.outcome": "succeeded",
		"why.controller": "kapp", "k8s.kind": "KAPP", "k8s.namespace.name": namespace, "k8s.object.name": "whole",
	} {
		if got := texts(changed.GetAttributes(), attribute); !slices.Contains(got, want) {
			t.Errorf("%s of the change is %q, want %q", attribute, got, want)
		}
	}
}

// TestReconcilesDoNotWaitForACollector has one that does not answer until there were more reconciles than it is let wait for.
func TestReconcilesDoNotWaitForACollector(t *testing.T) {
	gate := make(chan struct{})
	collector := newReceiver(t, gate)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL+"/v1/traces")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "64")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "16")
	recorder, end, err := newRecorder(t.Context(), &settings{whyAddress: off, metricsAddress: off, traces: httpProtobuf}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	reconciler := recorder.Controller("web", nil).Reconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		calls++
		return reconcile.Result{}, nil
	}))
	const many = 1000
	for range many {
		if _, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "web"}}); err != nil {
			t.Fatal(err)
		}
	}
	close(gate)
	end()
	collector.mutex.Lock()
	defer collector.mutex.Unlock()
	if calls != many || len(collector.spans) == 0 || len(collector.spans) >= many {
		t.Errorf("of %d reconciles, %d spans have arrived", calls, len(collector.spans))
	}
}
