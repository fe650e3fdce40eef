// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package story

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/internal/lens"
	"github.com/opdock/opdock/why"
)

const (
	// maxArrivals is how many deliveries are kept to find causes among.
	maxArrivals = 20_000
	// maxCauses and maxWrites bound a record, as package why does.
	maxCauses, maxWrites = 16, 32
	// maxReads is how many reads of a reconcile are kept.
	maxReads = 64
	// maxSubjects is how many objects are remembered as reconciled, and maxRefs how many versions as written.
	maxSubjects, maxRefs = 50_000, 20_000
	// maxRunning is how many reconciles are taken to go on at the same time. If there seem to be more, their ends were lost.
	maxRunning = 4096
	// lateness is by how much a timer may seem to be early: clocks are read at two places.
	lateness = 20 * time.Millisecond
	// flight is how long an event may take from the lens to the operator's queue, and a reconcile from there to its start.
	flight = 50 * time.Millisecond
	// unmarkedAfter is how long an operator may write until its first reconcile is marked. An operator may write something
	// when it starts, and reconcile only later.
	unmarkedAfter = 10 * time.Second
)

// Teller turns the events of a lens into records. It is not safe for concurrent use.
type Teller struct {
	// tell receives each record, in the order in which reconciles end.
	tell func(*why.Record)

	lastID   uint64
	running  map[uint64]*pass // by the ID that the operator gave it
	arrivals []arrival
	// sent are the UIDs of the objects that the process was sent.
	sent map[string]bool
	// past is the state of the latest reconcile of an object.
	past map[subject]*past
	refs map[lens.Version]reference
	// writers are the reconciles that made versions, and flips the fields that changed lately.
	writers map[uint64]subject
	flips   map[flipKey]*flip
	kind    map[string]string // of controllers, once a reconcile has read its object
	// inNoNamespace are the kinds of objects that were seen without a namespace.
	inNoNamespace map[schema.GroupKind]bool
	kindOf        map[schema.GroupResource]string // as far as objects of the resource were seen
	// marked means that the operator has marked a reconcile, and markable that it was built to.
	marked, markable bool
	// wroteFirst is when the process first wrote something that may belong to a reconcile.
	wroteFirst time.Time
	loose      grouping
}

// subject is an object and its controller.
type subject struct{ controller, namespace, name string }

// past is the state that a reconcile leaves for the next one of the same object.
type past struct {
	began, ended time.Time
	// cause is when the first of its causes was seen.
	cause  time.Time
	retry  bool
	timer  time.Duration
	record uint64
	// chain is how many reconciles in a row were owed to nothing but the one before.
	chain int
}

// due is when the timer of the reconcile leads to the next one.
func (p *past) due() time.Time { return p.ended.Add(p.timer) }

// pass is a reconcile that is going on.
type pass struct {
	id     uint64 // that the operator gave it; 0 if it marks nothing
	record why.Record
	subject
	began time.Time
	// last is when it was last seen to do something. It counts if the reconcile has no end.
	last  time.Time
	reads []timedRead
	// unsure means that it may have ended: events were lost since it began.
	unsure bool
}

// arrival is a delivery.
type arrival struct {
	*lens.Delivery
	at time.Time
	// relisted means that the object had changed while nothing was watched: the process had been sent an older version.
	relisted bool
}

// New returns a teller.
func New(tell func(*why.Record)) *Teller {
	t := &Teller{
		tell: tell, running: map[uint64]*pass{}, past: map[subject]*past{}, refs: map[lens.Version]reference{}, kind: map[string]string{},
		writers: map[uint64]subject{}, flips: map[flipKey]*flip{}, inNoNamespace: map[schema.GroupKind]bool{},
		kindOf: map[schema.GroupResource]string{}, sent: map[string]bool{},
	}
	t.loose.init(t)
	return t
}

// LacksMarks reports whether an operator was built to mark its reconciles, and writes without marking any. Its
// controllers may use client-go alone, although its module depends on controller-runtime. Its writes are grouped.
func (t *Teller) LacksMarks(now time.Time) bool {
	return t.markable && !t.marked && !t.wroteFirst.IsZero() && now.Sub(t.wroteFirst) >= unmarkedAfter
}

// Add takes the next event.
func (t *Teller) Add(e *lens.Event) {
	t.learn(e)
	t.loose.settle(e.At) // before the event: it may begin a new group, and in a recording only events have times
	switch {
	case e.Process != nil:
		t.restart(e.Process)
	case e.Delivery != nil && e.Delivery.Object != nil && e.Delivery.Fault == "":
		t.arrived(e)
	case e.Reconcile != nil && !e.Reconcile.Ended:
		t.begin(e)
	case e.Reconcile != nil:
		t.end(e)
	case e.Read != nil:
		t.read(e.Read, e.At, e.At)
	case e.Request != nil && isRead(e.Request):
		t.read(t.liveRead(e.Request), e.At, e.At.Add(e.Request.Duration))
	case e.Request != nil && e.Request.IsWrite():
		t.wrote(e)
	case e.Lost != nil:
		t.Missed()
	}
}

// Missed takes note that events are missing at this point, which may be the ends of reconciles.
func (t *Teller) Missed() {
	for _, p := range t.running {
		p.unsure = true
	}
}

// Settle emits records that have waited long enough. Call it from time to time.
func (t *Teller) Settle(now time.Time) { t.loose.settle(now) }

// Flush emits all waiting records.
func (t *Teller) Flush() {
	t.loose.settleAll()
	t.cutOff("the recording ended before the reconcile did")
}

// inOrder returns some of the reconciles that go on, in the order in which they began.
func (t *Teller) inOrder(is func(*pass) bool) (some []*pass) {
	for _, p := range t.running {
		if is(p) {
			some = append(some, p)
		}
	}
	slices.SortFunc(some, byID)
	return some
}

func byID(a, b *pass) int { return cmp.Compare(a.record.ID, b.record.ID) }

// cutOff emits the reconciles without an end, in the order in which they began.
func (t *Teller) cutOff(reason string) {
	unfinished := t.inOrder(func(*pass) bool { return true })
	clear(t.running)
	for _, p := range unfinished {
		t.finish(p, &lens.Reconcile{Duration: p.last.Sub(p.began), Error: reason}, p.last)
	}
}

// restart ends the unfinished reconciles of a process.
func (t *Teller) restart(p *lens.Process) {
	t.loose.settleAll()
	t.cutOff("the operator ended before the reconcile did")
	if p.Started {
		// Its cache is filled again, and its queue has no retries and timers.
		t.arrivals, t.marked, t.markable, t.wroteFirst = nil, false, p.Instrumented, time.Time{}
		clear(t.past)
		clear(t.sent)
	}
}

func (t *Teller) arrived(e *lens.Event) {
	if len(t.arrivals) == maxArrivals {
		t.arrivals = append(t.arrivals[:0], t.arrivals[maxArrivals/4:]...)
	}
	// A list may prove to be a delivery only when a watch follows it.
	at := len(t.arrivals)
	for at > 0 && t.arrivals[at-1].at.After(e.At) {
		at--
	}
	relisted := e.Delivery.Initial && t.sent[e.Delivery.Object.UID] && e.Delivery.Change != nil && !e.Delivery.Change.None
	t.arrivals = slices.Insert(t.arrivals, at, arrival{e.Delivery, e.At, relisted})
	if len(t.sent) >= maxSubjects {
		clear(t.sent)
	}
	t.sent[e.Delivery.Object.UID] = true
}

func (t *Teller) begin(e *lens.Event) {
	t.marked = true
	r := e.Reconcile
	about := subject{r.Controller, r.Namespace, r.Name}
	// A controller reconciles an object only once at a time. But several may have the same name, and requests may name a cluster or
	// a kind besides.
	for _, p := range t.inOrder(func(p *pass) bool { return p.unsure && p.subject == about && r.Name != "" }) {
		t.loseEnd(p)
	}
	if len(t.running) >= maxRunning {
		t.loseEnd(slices.MinFunc(slices.Collect(maps.Values(t.running)), byID))
	}
	t.lastID++
	t.running[r.ID] = &pass{
		id: r.ID, subject: about, began: e.At, last: e.At,
		record: why.Record{ID: t.lastID, Controller: r.Controller, Start: e.At, Object: why.Object{Namespace: r.Namespace, Name: r.Name}},
	}
}

// loseEnd emits a reconcile whose end is not among the events. How it ended is not known, so it does not lead to a retry.
func (t *Teller) loseEnd(p *pass) {
	delete(t.running, p.id)
	t.finish(p, &lens.Reconcile{Duration: p.last.Sub(p.began), Error: "the end of the reconcile was not recorded"}, p.last)
	t.past[p.subject].retry = false
}

// wrote notes a write for the reconcile that sent it. Writes without one are grouped: controllers that use client-go
// alone mark nothing, and may be all of an operator or only some of it. So are writes of a reconcile that has ended: it may
// have left something running.
func (t *Teller) wrote(e *lens.Event) {
	r := e.Request
	p := t.running[r.Reconcile]
	if p == nil && r.Reconcile == 0 {
		p = t.onlyAbout(t.objectOf(r))
	}
	if p == nil {
		t.loose.wrote(e)
		return
	}
	if answered := e.At.Add(r.Duration); answered.After(p.last) {
		p.last = answered
	}
	p.record.Written++
	if len(p.record.Writes) == maxWrites {
		return
	}
	t.refer(p, e, why.WriteRef{Record: p.record.ID, Index: len(p.record.Writes)})
	p.record.Writes = append(p.record.Writes, t.writeOf(e))
}

// onlyAbout returns the only running reconcile of an object or of its owner; nil if there is none or several. If a
// reconciler uses context.TODO() instead of its context, the reconcile of a write is unknown.
func (t *Teller) onlyAbout(object *lens.Object) (found *pass) {
	if object == nil {
		return nil
	}
	for _, p := range t.running {
		if p.unsure || !p.isAbout(object) {
			continue
		}
		if found != nil {
			return nil
		}
		found = p
	}
	return found
}

func (t *Teller) writeOf(e *lens.Event) why.Write {
	r := e.Request
	kind := cmp.Or(t.kindOf[schema.GroupResource{Group: r.Resource.Group, Resource: r.Resource.Resource}], r.Resource.Resource)
	w := why.Write{
		Verb: r.Verb, Subresource: r.Resource.Subresource, Manager: r.FieldManager, At: e.At, Duration: r.Duration,
		Object:   why.Object{Kind: kind, Group: r.Resource.Group, Version: r.Resource.Version, Namespace: r.Resource.Namespace, Name: r.Resource.Name},
		NoChange: r.Change != nil && r.Change.None,
	}
	if r.Object != nil {
		w.Object, w.ResourceVersion = objectOf(r.Object), r.Object.ResourceVersion
	}
	if r.Verb == "delete" || r.Verb == "deletecollection" {
		w.Manager = ""
	}
	if r.Refused() {
		w.Error = strings.TrimSpace(r.Message)
		if w.Error == "" {
			w.Error = strings.TrimSpace(r.Reason + " " + r.Error)
		}
	}
	return w
}

func objectOf(o *lens.Object) why.Object {
	return why.Object{Kind: o.Kind, Group: o.Group, Version: o.Version, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}

// end takes the end of a reconcile.
func (t *Teller) end(e *lens.Event) {
	r := e.Reconcile
	p := t.running[r.ID]
	if p == nil {
		return // it began before the lens did
	}
	delete(t.running, r.ID)
	t.finish(p, r, e.At)
}

// finish writes about a reconcile that ended like r.
func (t *Teller) finish(p *pass, r *lens.Reconcile, at time.Time) {
	record := &p.record
	record.Duration, record.RequeueAfter, record.Error = r.Duration, timerOf(r), r.Error
	record.Outcome = outcomeOf(r)
	t.learnKind(p)
	before := t.past[p.subject]
	t.explain(p, before)
	if len(record.Causes) > 0 {
		if waited := p.began.Sub(record.Causes[0].Seen); waited > 0 {
			record.Waited = waited
		}
	}
	t.remember(p, r, at, t.findings(p, before))
	t.tell(record)
}

// explain sets the causes of a reconcile.
func (t *Teller) explain(p *pass, before *past) {
	causes := t.causes(p, before)
	p.record.Causes, p.record.Folded = causes[:min(len(causes), maxCauses)], len(causes)
}

func outcomeOf(r *lens.Reconcile) why.Outcome {
	switch {
	case r.Panicked:
		return why.Panicked
	case r.Error != "" && r.Terminal:
		return why.Terminal
	case r.Error != "":
		return why.Failed
	case r.Requeue || r.RequeueAfter > 0:
		return why.Requeued
	}
	return why.Succeeded
}

// timerOf is after which time the object of a reconcile is reconciled again. controller-runtime ignores it beside an error.
func timerOf(r *lens.Reconcile) time.Duration {
	if r.Error != "" {
		return 0
	}
	return r.RequeueAfter
}

func (t *Teller) remember(p *pass, r *lens.Reconcile, at time.Time, chain int) {
	if len(t.past) >= maxSubjects {
		clear(t.past)
	}
	t.past[p.subject] = &past{
		began: p.began, ended: at, cause: p.record.Causes[0].Seen, record: p.record.ID, chain: chain,
		retry: r.Error != "" && !r.Terminal || r.Panicked || r.Requeue && r.RequeueAfter == 0, timer: timerOf(r),
	}
}
