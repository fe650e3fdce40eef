// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"slices"
	"time"
)

// Summary holds the totals since the recorder started.
type Summary struct {
	// Version is the version of the endpoint and of records. It grows when something is added.
	Version int `json:"version"`
	// Instance names the recorder, and is another one after a restart.
	Instance string `json:"instance,omitempty"`
	// Since is when the recorder began.
	Since       time.Time           `json:"since"`
	Controllers []ControllerSummary `json:"controllers"`
	// Last is the ID of the last record, 0 if there is none.
	Last    uint64  `json:"last"`
	Kept    Kept    `json:"kept"`
	Dropped Dropped `json:"dropped"`
}

// ControllerSummary holds the totals of one controller.
type ControllerSummary struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
	// Reconciles is how often the reconciler was called, Causes what for; a reconcile has several causes if there are
	// events that were folded into it. Folded are the calls that this saved.
	Reconciles uint64               `json:"reconciles"`
	Causes     map[CauseType]uint64 `json:"causes"`
	Folded     uint64               `json:"folded"`
	Outcomes   map[Outcome]uint64   `json:"outcomes"`
	// Writes is the number of write requests, and NoChange how many of them changed nothing.
	Writes        uint64 `json:"writes"`
	NoChange      uint64 `json:"noChange"`
	NoOp          uint64 `json:"noop"`
	SelfInflicted uint64 `json:"selfInflicted"`
	// Loops is how many reconciles were part of one.
	Loops uint64 `json:"loops"`
	// UserChanges is the number of changes that were not made by controllers. The next two are the reconciles and
	// writes per such change; 0 if there were none. Reconciles that the initial list triggered are not included.
	UserChanges         uint64  `json:"userChanges"`
	ReconcilesPerChange float64 `json:"reconcilesPerChange"`
	WritesPerChange     float64 `json:"writesPerChange"`
	// Filtered is the number of events that requested no reconcile. Events that predicates dropped are known only for
	// controllers built by ControllerManagedBy.
	Filtered uint64 `json:"filtered"`
	// Waiting is for how many objects events wait to be reconciled; timers that have not ended are not counted.
	Waiting int `json:"waiting"`
	// MeanWaited and MeanDuration are averages.
	MeanWaited   time.Duration `json:"meanWaited"`
	MeanDuration time.Duration `json:"meanDuration"`
}

// Kept is the amount of data that is kept now.
type Kept struct {
	Records int `json:"records"`
	Objects int `json:"objects"`
	// Bytes is about how much the records take.
	Bytes int `json:"bytes"`
}

// Dropped is what there was no room for, or no record.
type Dropped struct {
	// Records had to make room for newer ones.
	Records uint64 `json:"records"`
	// Causes were not noted because too many objects waited.
	Causes uint64 `json:"causes"`
	// Changes is the number of causes without their changes, because too many were waiting.
	Changes uint64 `json:"changes"`
	// Writes is the number of writes by goroutines whose reconcile had already ended.
	Writes uint64 `json:"writes"`
}

// endpointVersion is the version in responses of the endpoint.
const endpointVersion = 1

// Summary returns the totals.
func (r *Recorder) Summary() Summary {
	s := Summary{Version: endpointVersion, Controllers: []ControllerSummary{}}
	if r == nil {
		return s
	}
	r.readSettled(func() {
		s.Instance, s.Since = r.instance(), r.began
		s.Kept = Kept{Records: r.store.count, Objects: len(r.store.byObject), Bytes: r.store.bytes}
		s.Dropped = r.droppedNow()
		if r.store.last != nil {
			s.Last = r.store.last.record.ID
		}
		for _, c := range r.controllers {
			s.Controllers = append(s.Controllers, c.summary())
		}
	})
	slices.SortStableFunc(s.Controllers, func(a, b ControllerSummary) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (r *Recorder) droppedNow() Dropped {
	return Dropped{Records: r.store.dropped, Causes: r.dropped.causes, Changes: r.dropped.changes, Writes: r.dropped.writes}
}

// summary needs the recorder's mutex.
func (c *Controller) summary() ControllerSummary {
	t := &c.totals
	s := ControllerSummary{
		Name: c.name, Kind: c.kind.Kind, Reconciles: t.reconciles, Folded: t.folded, Writes: t.written, NoChange: t.noChange,
		Causes: map[CauseType]uint64{}, Outcomes: map[Outcome]uint64{},
		NoOp: t.findings[NoOp], SelfInflicted: t.findings[SelfInflicted], Loops: t.findings[Loop],
		UserChanges: t.userChanges, Filtered: c.filtered,
	}
	for key, number := range t.causes {
		s.Causes[key.cause] += number
	}
	for outcome, number := range t.outcomes {
		s.Outcomes[outcome] = number
	}
	average := t.amplification()
	s.ReconcilesPerChange, s.WritesPerChange = average.reconciles, average.writes
	if t.reconciles > 0 {
		s.MeanWaited = t.waited / time.Duration(t.reconciles)
		s.MeanDuration = t.took / time.Duration(t.reconciles)
	}
	s.Waiting = c.waits
	for key, number := range c.unlisted {
		s.Causes[key.cause] += number
	}
	return s
}

// countFiltered counts the events that triggered nothing: predicates dropped them, or handlers
// requested nothing. It may briefly include an event that is being handled, but a reported number
// never decreases.
func (c *Controller) countFiltered() {
	if c.seenBefore > c.enqueued {
		c.filtered = max(c.filtered, c.seenBefore-c.enqueued)
	}
}
