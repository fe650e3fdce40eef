// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/opdock/opdock/why"
	"github.com/opdock/opdock/why/diff"
)

// The limits for loops, the same as in package why.
const (
	loopLength = 5
	loopFlips  = 4
	loopWindow = time.Minute
	// maxFlips is how many fields are watched for going back and forth.
	maxFlips = 10_000
)

// findings returns the findings about a reconcile that has ended, by the rules of package why. The fields
// that an operator reads are unknown from outside, so every change except to the object's own status counts
// as relevant.
func (t *Teller) findings(p *pass, before *past) (chain int) {
	r := &p.record
	known := r.Folded <= len(r.Causes)
	self := known && len(r.Causes) > 0 && !slices.ContainsFunc(r.Causes, func(c why.Cause) bool { return !t.isOwnEcho(p, &c) })
	add := func(f why.Finding) { r.Findings = append(r.Findings, f) }
	if self {
		chain = 1
		if before != nil {
			chain += before.chain
		}
		add(why.Finding{Type: why.SelfInflicted, Message: "triggered only by its own writes"})
	}
	if !changedSomething(r) && (r.Outcome == why.Succeeded || r.Outcome == why.Requeued) && known && !slices.ContainsFunc(r.Causes, func(c why.Cause) bool { return t.isNews(p, &c) }) {
		message := "nothing it reads has changed, and it wrote nothing"
		if r.Written > 0 {
			message = "nothing it reads has changed, and its writes changed nothing"
		}
		add(why.Finding{Type: why.NoOp, Message: message})
	}
	if self && chain >= loopLength {
		add(ownLoop(chain, &r.Causes[len(r.Causes)-1]))
	}
	if swings := t.flip(p); swings != nil {
		add(*swings)
	}
	return chain
}

func changedSomething(r *why.Record) bool {
	return r.Written > len(r.Writes) || slices.ContainsFunc(r.Writes, func(w why.Write) bool { return !w.NoChange && w.Error == "" })
}

// isOwnEcho reports whether an event is the echo of a write by an earlier reconcile of the same object.
func (t *Teller) isOwnEcho(p *pass, c *why.Cause) bool {
	if c.Write == nil || c.Write.Record == p.record.ID {
		return false
	}
	by, known := t.writers[c.Write.Record]
	return known && by == p.subject
}

// isNews reports whether an event may be new to the operator.
func (t *Teller) isNews(p *pass, c *why.Cause) bool {
	switch {
	case t.isOwnEcho(p, c), c.Type == why.Listed, c.Type == why.Resynced:
		return false
	case c.Type != why.Updated, len(c.Changes) == 0:
		return true
	}
	own := c.Object != nil && c.Object.Name == p.name && c.Object.Namespace == p.namespace && c.Object.Kind == p.record.Object.Kind
	return !own || slices.ContainsFunc(c.Changes, func(change why.Change) bool { return !diff.IsWithin(change.Path, "status") })
}

// ownLoop is a reconcile that triggers itself.
func ownLoop(chain int, last *why.Cause) why.Finding {
	loop := why.Finding{Type: why.Loop, Message: fmt.Sprintf("triggered itself %d times in a row", chain), Writers: last.By}
	what := describe(last.Object)
	switch {
	case len(last.Changes) > 0:
		loop.Path = last.Changes[0].Path
		loop.Message += fmt.Sprintf(", by writing %s of %s", loop.Path, what)
	case last.Type == why.Created:
		loop.Message += ", by creating " + what
	case last.Type == why.Deleted:
		loop.Message += ", by deleting " + what
	}
	return loop
}

// flipKey names a field of an object that led to reconciles.
type flipKey struct{ uid, path string }

// flip is a field that changed lately.
type flip struct {
	old, now, version string
	// turns holds the times at which it last returned to its previous value.
	turns []time.Time
	last  time.Time
	// there and back are who made the last two changes.
	there, back string
}

// flip finds a field that two writers change back and forth.
func (t *Teller) flip(p *pass) *why.Finding {
	for i := range p.record.Causes {
		c := &p.record.Causes[i]
		if c.Type != why.Updated || c.Object == nil {
			continue
		}
		for j := range c.Changes {
			change := &c.Changes[j]
			f := t.turned(c, change)
			if len(f.turns) < loopFlips || f.there == f.back || f.there == "" || f.back == "" {
				continue
			}
			return &why.Finding{
				Type: why.Loop, Path: change.Path, Writers: c.By,
				Message: fmt.Sprintf("%s of %s goes back and forth between %s and %s", change.Path, describe(c.Object), min(f.there, f.back), max(f.there, f.back)),
			}
		}
	}
	return nil
}

// turned notes a change of a field. An event that several reconciles were sent counts once.
func (t *Teller) turned(c *why.Cause, change *why.Change) *flip {
	key := flipKey{c.Object.UID, change.Path}
	f := t.flips[key]
	switch {
	case f == nil:
		if len(t.flips) >= maxFlips {
			clear(t.flips)
		}
		f = &flip{}
		t.flips[key] = f
	case f.version == c.ResourceVersion:
		return f
	case f.now == change.Old && f.old == change.New && c.Seen.Sub(f.last) <= loopWindow:
		f.turns = append(f.turns, c.Seen)
	default:
		f.turns = nil
	}
	f.turns = slices.DeleteFunc(f.turns, func(at time.Time) bool { return c.Seen.Sub(at) > loopWindow })
	f.old, f.now, f.version, f.last = change.Old, change.New, c.ResourceVersion, c.Seen
	f.there, f.back = f.back, managers(c.By)
	return f
}

func managers(by []why.Writer) string {
	names := make([]string, len(by))
	for i := range by {
		names[i] = by[i].Manager
	}
	return strings.Join(names, ", ")
}

func describe(o *why.Object) string {
	switch {
	case o == nil:
		return "an unknown object"
	case o.Namespace == "":
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}
