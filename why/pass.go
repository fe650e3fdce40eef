// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/diff"
)

// Reconciler wraps a reconciler and records its causes and its effects.
func (c *Controller) Reconciler(r reconcile.Reconciler) reconcile.Reconciler {
	return TypedReconciler(c, r)
}

// TypedReconciler is Controller.Reconciler for requests of any type.
func TypedReconciler[request comparable](c *Controller, r reconcile.TypedReconciler[request]) reconcile.TypedReconciler[request] {
	if c == nil {
		return r
	}
	return &typedReconciler[request]{controller: c, inner: r}
}

type typedReconciler[request comparable] struct {
	controller *Controller
	inner      reconcile.TypedReconciler[request]
}

// Reconcile implements reconcile.TypedReconciler.
func (r *typedReconciler[request]) Reconcile(ctx context.Context, req request) (result reconcile.Result, err error) {
	p := r.controller.begin(keyOf(req))
	ctx = p.begin(context.WithValue(ctx, passKey{}, p))
	returned := false
	defer func() {
		if !returned {
			// Without recover, so the panic continues with its own stack.
			p.end(reconcile.Result{}, errPanicked)
		}
	}()
	result, err = r.inner.Reconcile(ctx, req)
	returned = true
	p.end(result, err)
	return result, err
}

var errPanicked = errors.New("the reconciler panicked")

// pass is a reconcile that has begun.
type pass struct {
	controller *Controller
	key        waitKey
	object     objectKey
	record     *Record
	trace      passTrace
	// atOnce is whether there is a span or a log line, which must be written at once.
	atOnce bool

	// The rest belongs to who settles the backlog.
	events []*trigger
	// chain is how many reconciles of the object in a row were owed to the one before, this one included.
	chain int
	// amplification is the amplification of the controller, including this reconcile.
	amplification amplification
	// writes holds the writes that the record has room for.
	writes []*sentWrite
	// ended is whether the record is complete. Later writes, by goroutines that outlive their reconcile, are not in
	// it.
	ended bool
}

type passKey struct{}

// passOf returns the reconcile that a context belongs to; nil if there is none of this recorder.
func (r *Recorder) passOf(ctx context.Context) *pass {
	if p, ok := ctx.Value(passKey{}).(*pass); ok && p.controller.recorder == r {
		return p
	}
	return nil
}

// RecordID returns the ID that the record of the running reconcile will have; 0 if there is none.
func RecordID(ctx context.Context) uint64 {
	if p, ok := ctx.Value(passKey{}).(*pass); ok {
		return p.record.ID
	}
	return 0
}

func (c *Controller) begin(key waitKey) *pass {
	r := c.recorder
	object := Object{Kind: c.kind.Kind, Group: c.kind.Group, Version: c.kind.Version, Namespace: key.Namespace, Name: key.Name}
	if key.other != nil {
		object.Name = diff.Shorten(fmt.Sprint(key.other), 253)
	}
	p := &pass{
		controller: c, key: key,
		object: objectKey{c.name, object.Group, object.Kind, object.Namespace, object.Name},
		record: &Record{ID: r.lastID.Add(1), Controller: c.name, Object: object, Start: r.options.Clock.Now()},
	}
	r.write(line{pass: p})
	return p
}

// explain finds the causes of a reconcile.
func (r *Recorder) explain(p *pass) {
	c, record := p.controller, p.record
	p.events, record.Folded, record.Waited = c.take(p.key, record.Start)
	if len(p.events) == 0 {
		p.events, record.Folded = []*trigger{c.overlooked(p.object, record.Start)}, 1
		record.Waited = max(0, record.Start.Sub(p.events[0].seen))
	}
	p.chain = r.chainOf(p)
}

// overlooked explains a reconcile without a waiting cause. An event that arrives at the moment a reconcile starts
// counts as a cause of that reconcile, but the queue requests another one for it. If the first reconcile has written
// something, an unwrapped source may have seen that write instead, so the cause is unknown.
func (c *Controller) overlooked(key objectKey, now time.Time) *trigger {
	const instant, soon = 10 * time.Millisecond, 100 * time.Millisecond
	if h := c.recorder.store.of(key); h != nil {
		last := h.last.record
		if count := len(last.Causes); count > 0 {
			cause := last.Causes[count-1]
			ended := last.Start.Add(last.Duration)
			if cause.Object != nil && !cause.Repeated && last.Start.Sub(cause.Seen) < instant && now.Sub(ended) < soon && !last.changedSomething() {
				return &trigger{what: cause.Type, seen: cause.Seen, told: &told{cause: cause, object: *cause.Object}}
			}
		}
	}
	return causedBy(Unknown, now)
}

// end notes how it ended.
func (p *pass) end(result reconcile.Result, err error) {
	r, record := p.controller.recorder, p.record
	record.Duration = max(0, r.options.Clock.Since(record.Start))
	record.Outcome, record.RequeueAfter = Succeeded, 0
	switch {
	case errors.Is(err, errPanicked):
		record.Outcome = Panicked
	case errors.Is(err, reconcile.TerminalError(nil)):
		record.Outcome = Terminal
	case err != nil:
		record.Outcome = Failed
	case result.RequeueAfter > 0:
		record.Outcome, record.RequeueAfter = Requeued, result.RequeueAfter
	case result.Requeue: //nolint:staticcheck // reconcilers may still use it
		record.Outcome = Requeued
	}
	if err != nil {
		record.Error = errorText(err, 1024)
	}
	p.atOnce = p.trace.span != nil || r.options.Logger.V(1).Enabled()
	r.write(line{pass: p, ended: true})
	if p.atOnce {
		r.settle()
		r.tellAll()
	}
}

// comesBack records whether the reconcile requested another one.
func (p *pass) comesBack() {
	record := p.record
	ended := record.Start.Add(record.Duration)
	switch {
	case record.Outcome == Panicked || record.Outcome == Failed || record.Outcome == Requeued && record.RequeueAfter == 0:
		p.controller.comeBack(p.key, Retried, ended, 0)
	case record.Outcome == Requeued:
		p.controller.comeBack(p.key, Timer, ended, record.RequeueAfter)
	}
}

// complete adds what is known only after the end, and publishes the record.
func (r *Recorder) complete(p *pass) {
	record := p.record
	p.ended = true
	p.comesBack()
	if len(p.writes) > 0 {
		record.Writes = make([]Write, len(p.writes))
		for i, w := range p.writes {
			record.Writes[i] = w.Write
		}
	}
	record.Causes = make([]Cause, len(p.events))
	var before []Cause
	if h := r.store.of(p.object); h != nil {
		before = h.last.record.Causes
	}
	for i, e := range p.events {
		cause := e.cause
		cause.Repeated = slices.ContainsFunc(before, func(c Cause) bool { return c.isSame(&cause) })
		if written := r.echoes.find(e, record.ID); written != nil {
			cause.Write = &WriteRef{Record: written.record, Index: written.index}
			p.trace.links = append(p.trace.links, written.trace)
			r.echoes.learn(written, cause.By)
		}
		record.Causes[i] = cause
		if record.Object.UID == "" && cause.Object != nil && p.isAbout(cause.Object) {
			record.Object.UID = cause.Object.UID
		}
	}
	r.findFindings(p)
	p.controller.totals.add(p)
	p.amplification = p.controller.totals.amplification()
	r.publish(p.object, record)
	if p.atOnce || record.isLoop() {
		r.untold = append(r.untold, p)
	}
}

// isAbout reports whether an object is the one that is reconciled.
func (p *pass) isAbout(object *Object) bool {
	return object.Kind == p.object.kind && object.Group == p.object.group &&
		object.Namespace == p.object.namespace && object.Name == p.object.name
}

// errorText returns the message of an error, which is never empty.
func errorText(err error, limit int) string {
	return cmp.Or(diff.Shorten(diff.HideSecrets(err.Error()), limit), "an error without a message")
}
