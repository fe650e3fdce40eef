// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

// pause is the time without writes for an object after which the next write counts as another
// reconcile.
const pause = 250 * time.Millisecond

// grouping creates records from writes without marks: writes that belong to one object and
// follow each other closely count as one reconcile of it.
type grouping struct {
	teller *Teller
	open   map[objectName]*pass
	// told is the state of the latest group of an object.
	told map[objectName]*past
}

type objectName struct{ group, kind, namespace, name string }

// Guessed is the name of the controller in records from grouping.
const Guessed = "(grouped by cause and time)"

func (g *grouping) init(t *Teller) {
	g.teller, g.open, g.told = t, map[objectName]*pass{}, map[objectName]*past{}
}

// wrote adds a write to the group of the object it belongs to.
func (g *grouping) wrote(e *lens.Event) {
	name, version, ok := g.rootOf(e.Request)
	if !ok {
		return
	}
	if g.teller.wroteFirst.IsZero() {
		g.teller.wroteFirst = e.At
	}
	one := g.open[name]
	if one != nil && g.isNext(one, e) {
		g.end(name, one)
		one = nil
	}
	if one == nil {
		g.teller.lastID++
		one = &pass{
			subject: subject{Guessed + " " + name.kind + "." + name.group, name.namespace, name.name}, began: e.At,
			record: why.Record{
				ID: g.teller.lastID, Controller: Guessed, Start: e.At, Outcome: why.Succeeded,
				Object: why.Object{Kind: name.kind, Group: name.group, Version: version, Namespace: name.namespace, Name: name.name},
			},
		}
		g.open[name] = one
	}
	one.last = e.At.Add(e.Request.Duration)
	one.record.Written++
	if e.Request.Refused() {
		one.record.Outcome = why.Failed
		one.record.Error = g.teller.writeOf(e).Error
	}
	if len(one.record.Writes) < maxWrites {
		g.teller.refer(one, e, why.WriteRef{Record: one.record.ID, Index: len(one.record.Writes)})
		one.record.Writes = append(one.record.Writes, g.teller.writeOf(e))
	}
}

// isNext reports whether a write begins another reconcile than the group. A reconcile seldom repeats a write that took
// effect. If another client's change arrived since that write, the change is the likelier reason.
func (g *grouping) isNext(one *pass, e *lens.Event) bool {
	write := g.teller.writeOf(e)
	for _, earlier := range slices.Backward(one.record.Writes) {
		if earlier.Error == "" && earlier.Verb == write.Verb && earlier.Subresource == write.Subresource && earlier.Object == write.Object {
			return g.teller.hasNews(one, earlier.At, e.At)
		}
	}
	return false
}

// rootOf returns the object that a write belongs to: the owner of the written object, or the
// object itself if it has none or if a controller of its own writes its status.
func (g *grouping) rootOf(r *lens.Request) (name objectName, version string, ok bool) {
	switch {
	case r.Resource.Resource == "events" || r.Resource.Group == "coordination.k8s.io" || r.Change.RenewsLeader():
		return name, "", false // they are about the operator itself, or repeat its actions
	case r.Object == nil && r.Verb == "create" && r.Reason == string(metav1.StatusReasonAlreadyExists):
		return name, "", false // many operators create what they need each time, and expect this answer
	}
	o := g.teller.objectOf(r)
	switch {
	case o == nil:
		return objectName{r.Resource.Group, r.Resource.Resource, r.Resource.Namespace, r.Resource.Name}, r.Resource.Version, r.Resource.Name != "" || r.Verb == "deletecollection"
	case writesOwnStatus(r):
		return objectName{o.Group, o.Kind, o.Namespace, o.Name}, o.Version, true
	}
	if i := slices.IndexFunc(o.Owners, func(owner lens.Owner) bool { return owner.Controller }); i >= 0 {
		owner := o.Owners[i]
		name = objectName{owner.Group, owner.Kind, o.Namespace, owner.Name}
		if g.teller.inNoNamespace[schema.GroupKind{Group: owner.Group, Kind: owner.Kind}] {
			name.namespace = ""
		}
		return name, "", true
	}
	return objectName{o.Group, o.Kind, o.Namespace, o.Name}, o.Version, true
}

// settle emits the groups without writes for a while.
func (g *grouping) settle(now time.Time) {
	g.settleIf(func(one *pass) bool { return now.Sub(one.last) > pause })
}

func (g *grouping) settleAll() { g.settleIf(func(*pass) bool { return true }) }

// settleIf emits groups, in the order in which they began.
func (g *grouping) settleIf(is func(*pass) bool) {
	var over []objectName
	for name, one := range g.open {
		if is(one) {
			over = append(over, name)
		}
	}
	slices.SortFunc(over, func(a, b objectName) int { return cmp.Compare(g.open[a].record.ID, g.open[b].record.ID) })
	for _, name := range over {
		g.end(name, g.open[name])
	}
}

func (g *grouping) end(name objectName, one *pass) {
	delete(g.open, name)
	record := &one.record
	record.Duration = one.last.Sub(one.began)
	before := g.told[name]
	g.teller.explain(one, before)
	if len(g.told) >= maxSubjects {
		clear(g.told)
	}
	g.told[name] = &past{began: one.began, ended: one.began, record: record.ID, chain: g.teller.findings(one, before)}
	g.teller.tell(record)
}
