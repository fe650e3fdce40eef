// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/why/diff"
)

// findFindings returns the findings about a reconcile that has ended.
func (r *Recorder) findFindings(p *pass) {
	record := p.record
	add := func(f Finding) { record.Findings = append(record.Findings, f) }
	self := r.selfInflicted(p)
	if self {
		add(Finding{Type: SelfInflicted, Message: "triggered only by its own writes"})
	}
	if !record.changedSomething() && (record.Outcome == Succeeded || record.Outcome == Requeued) && !r.hasNews(p) {
		add(Finding{Type: NoOp, Message: noOpMessage(record)})
	}
	if self && p.chain >= r.options.LoopLength {
		last := &record.Causes[len(record.Causes)-1]
		loop := Finding{Type: Loop, Message: fmt.Sprintf("triggered itself %d times in a row", p.chain), Writers: last.By}
		what := describeObject(last.Object)
		switch {
		case len(last.Changes) > 0:
			loop.Path = last.Changes[0].Path
			loop.Message += fmt.Sprintf(", by writing %s of %s", loop.Path, what)
		case last.Type == Created:
			loop.Message += ", by creating " + what
		case last.Type == Deleted:
			loop.Message += ", by deleting " + what
		}
		add(loop)
	}
	for _, loop := range r.findFlips(p) {
		add(loop)
	}
}

func noOpMessage(record *Record) string {
	message := "nothing it reads has changed"
	if !slices.ContainsFunc(record.Causes, func(c Cause) bool { return !c.Repeated }) {
		message = "the previous reconcile had already handled the same event"
	}
	if record.Written > 0 {
		return message + ", and its writes changed nothing"
	}
	return message + ", and it wrote nothing"
}

// isOwnEcho reports whether an event is the echo of a write that an earlier reconcile of the same object made.
func (r *Recorder) isOwnEcho(p *pass, e *trigger) (*echo, bool) {
	written := r.echoes.find(e, p.record.ID)
	return written, written != nil && written.by == p.object
}

func (r *Recorder) selfInflicted(p *pass) bool {
	if p.record.Folded > len(p.events) {
		return false // not all causes are known
	}
	for _, e := range p.events {
		if _, own := r.isOwnEcho(p, e); !own {
			return false
		}
	}
	return true
}

// chainOf is how many reconciles of an object in a row, this one included, each were owed to nothing but the one before.
func (r *Recorder) chainOf(p *pass) int {
	if p.record.Folded > len(p.events) {
		return 0
	}
	chain := 0
	for _, e := range p.events {
		written, own := r.isOwnEcho(p, e)
		if !own {
			return 0
		}
		chain = max(chain, written.chain+1)
	}
	return chain
}

// hasNews reports whether one of the events changed something that the reconciler reads and has not seen yet.
func (r *Recorder) hasNews(p *pass) bool {
	if p.record.Folded > len(p.events) {
		return true // or it is unknown
	}
	h := r.store.of(p.object)
	dealtWith := h != nil && (h.last.record.Outcome == Succeeded || h.last.record.Outcome == Requeued)
	for i, e := range p.events {
		if _, own := r.isOwnEcho(p, e); own || dealtWith && p.record.Causes[i].Repeated {
			continue
		}
		switch e.cause.Type {
		case Listed, Resynced:
		case Updated:
			if p.controller.readsAny(p, e) {
				return true
			}
		case Created, Deleted, Generic, Retried, Timer, Unknown:
			return true
		}
	}
	return false
}

// readsAny reports whether the reconciler reads one of the fields that changed.
func (c *Controller) readsAny(p *pass, e *trigger) bool {
	object := e.cause.Object
	if object == nil || e.deletion {
		return true
	}
	if e.cause.Changed > len(e.cause.Changes) {
		return true // not all changes are known
	}
	paths, named := c.reads[schema.GroupKind{Group: object.Group, Kind: object.Kind}]
	for i := range e.cause.Changes {
		path := e.cause.Changes[i].Path
		switch {
		case named:
			for _, read := range paths {
				if diff.IsWithin(path, read) || diff.IsWithin(read, path) {
					return true
				}
			}
		case p.isAbout(object) && diff.IsWithin(path, "status"):
		default:
			return true
		}
	}
	return false
}

func describeObject(o *Object) string {
	if o == nil {
		return "an unknown object"
	}
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}
