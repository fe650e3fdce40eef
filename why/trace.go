// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

type (
	tracer      = trace.Tracer
	spanContext = trace.SpanContext
)

// newTracer returns nil if spans are off.
func newTracer(provider trace.TracerProvider) tracer {
	if provider == nil {
		return nil
	}
	return provider.Tracer("github.com/opdock/opdock/why")
}

// passTrace is the span of a reconcile. It does nothing if there is none.
type passTrace struct {
	span trace.Span
	// links are the spans of the reconciles whose writes triggered this one.
	links []spanContext
}

// begin opens the span. With the returned context, spans of the reconciler become its children.
func (p *pass) begin(ctx context.Context) context.Context {
	tracer := p.controller.recorder.tracer
	if tracer == nil {
		return ctx
	}
	record := p.record
	// Each reconcile is its own trace. Its causes are linked, because there can be several.
	ctx, p.trace.span = tracer.Start(ctx, "reconcile "+record.Controller, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithTimestamp(record.Start), trace.WithAttributes(
			attribute.String("why.controller", record.Controller),
			attribute.String("k8s.kind", record.Object.Kind),
			attribute.String("k8s.namespace.name", record.Object.Namespace),
			attribute.String("k8s.object.name", record.Object.Name),
		))
	return ctx
}

func (t *passTrace) context() spanContext {
	if t.span == nil {
		return spanContext{}
	}
	return t.span.SpanContext()
}

func (t *passTrace) wrote(w *Write) {
	t.span.AddEvent("write", trace.WithTimestamp(w.At), trace.WithAttributes(
		attribute.String("why.verb", w.Verb),
		attribute.String("why.subresource", w.Subresource),
		attribute.String("why.object", describeObject(&w.Object)),
		attribute.Bool("why.no_change", w.NoChange),
		attribute.String("why.error", w.Error),
	))
}

// finishTrace copies the record to the span and ends it.
func (p *pass) finishTrace() {
	span, record := p.trace.span, p.record
	if span == nil {
		return
	}
	causes := make([]string, len(record.Causes))
	for i := range record.Causes {
		causes[i] = record.Causes[i].String()
	}
	for _, to := range p.trace.links {
		if to.IsValid() {
			span.AddLink(trace.Link{SpanContext: to})
		}
	}
	for i := range record.Writes {
		p.trace.wrote(&record.Writes[i])
	}
	fields, writers := fieldsAndWriters(record)
	span.SetAttributes(
		attribute.Int64("why.record", int64(record.ID)),
		attribute.StringSlice("why.causes", causes),
		attribute.StringSlice("why.fields", fields),
		attribute.StringSlice("why.writers", writers),
		attribute.StringSlice("why.findings", record.found()),
		attribute.Int("why.folded", record.Folded),
		attribute.Int("why.written", record.Written),
		attribute.String("why.outcome", string(record.Outcome)),
		attribute.Int64("why.waited_us", record.Waited.Microseconds()),
		attribute.Float64("why.reconciles_per_change", p.amplification.reconciles),
		attribute.Float64("why.writes_per_change", p.amplification.writes),
	)
	if record.Error != "" {
		span.SetStatus(codes.Error, record.Error)
	}
	span.End(trace.WithTimestamp(record.Start.Add(record.Duration)))
}

// fieldsAndWriters returns each changed field and each writer of a reconcile's causes once, to search spans by.
func fieldsAndWriters(record *Record) (fields, writers []string) {
	for i := range record.Causes {
		for _, change := range record.Causes[i].Changes {
			if !slices.Contains(fields, change.Path) {
				fields = append(fields, change.Path)
			}
		}
		for _, w := range record.Causes[i].By {
			if !slices.Contains(writers, w.Manager) {
				writers = append(writers, w.Manager)
			}
		}
	}
	return fields, writers
}
