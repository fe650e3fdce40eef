// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// traceProtocol is how spans are exported.
type traceProtocol string

const (
	noTraces     traceProtocol = ""
	httpProtobuf traceProtocol = "http/protobuf"
	grpcProtobuf traceProtocol = "grpc"
)

// tracesFrom reads those of OpenTelemetry's variables that say whether and how spans are exported. Where to, with which
// headers and certificates, how many and in which batches is read from others by the exporter and the SDK themselves.
func tracesFrom(getenv func(string) string) (traceProtocol, error) {
	first := func(names ...string) (name, value string) {
		for _, name := range names {
			if value := strings.TrimSpace(getenv(name)); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	_, endpoint := first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if endpoint == "" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return noTraces, nil
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "", "otlp":
	case "none":
		return noTraces, nil
	default:
		return noTraces, fmt.Errorf("OTEL_TRACES_EXPORTER is %q; use otlp or none", exporter)
	}
	switch name, protocol := first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"); traceProtocol(protocol) {
	case noTraces, httpProtobuf:
		return httpProtobuf, nil
	case grpcProtobuf:
		return grpcProtobuf, nil
	default:
		return noTraces, fmt.Errorf("%s is %q; use %s or %s", name, protocol, httpProtobuf, grpcProtobuf)
	}
}

// newTracerProvider exports spans in batches, in the background. Spans that the collector does not accept in time are
// dropped, so nothing waits for it. The returned function sends the remaining spans, and waits for a few seconds at
// most.
func newTracerProvider(ctx context.Context, protocol traceProtocol, log logr.Logger) (trace.TracerProvider, func(), error) {
	sender := otlptracehttp.NewClient()
	if protocol == grpcProtobuf {
		sender = otlptracegrpc.NewClient()
	}
	exporter, err := otlptrace.New(ctx, sender)
	if err != nil {
		return nil, nil, fmt.Errorf("exporting spans: %w", err)
	}
	// Those of OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come last, and win.
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "opdock-manager"), attribute.String("service.version", version())),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, nil, fmt.Errorf("exporting spans: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Error(err, "Spans are lost") }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return provider, func() {
		const enough = 5 * time.Second
		last, cancel := context.WithTimeout(context.Background(), enough)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			log.Error(err, "Not all spans were exported")
		}
	}, nil
}
