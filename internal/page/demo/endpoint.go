// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/why"
)

// keptRecords is the number of records that are kept for later clients.
const keptRecords = 5000

// Endpoint serves made-up records the way a recorder serves real ones.
type Endpoint struct {
	// Findings tracks problems in the made-up world.
	Findings *findings.Tracker

	mutex   sync.Mutex
	records []why.Record
	news    chan struct{}
	causes  map[why.CauseType]uint64
	finds   map[why.FindingType]uint64

	reconciles, writes, folded uint64
}

func newEndpoint() *Endpoint {
	return &Endpoint{Findings: findings.NewTracker(), news: make(chan struct{}), causes: map[why.CauseType]uint64{}, finds: map[why.FindingType]uint64{}}
}

func (e *Endpoint) add(r why.Record) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.records = append(e.records, r)
	e.Findings.Add(&r)
	if len(e.records) > 2*keptRecords {
		e.records = append([]why.Record(nil), e.records[keptRecords:]...)
	}
	for _, cause := range r.Causes {
		e.causes[cause.Type]++
	}
	for _, finding := range r.Findings {
		e.finds[finding.Type]++
	}
	e.reconciles++
	e.writes += uint64(r.Written)
	e.folded += uint64(r.Folded - 1)
	close(e.news)
	e.news = make(chan struct{})
}

// Records returns the kept records.
func (e *Endpoint) Records() []why.Record {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return slices.Clone(e.records)
}

// after returns the records that came after so many, in the order of their arrival.
func (e *Endpoint) after(id uint64) (records []why.Record, news <-chan struct{}) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	// Stories overlap, so records arrive in another order than that of their numbers.
	from := len(e.records)
	for from > 0 && e.records[from-1].ID != id {
		from--
	}
	return append(records, e.records[from:]...), e.news
}

func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/records":
		records, _ := e.after(0)
		reply(w, map[string]any{"records": records})
	case "/summary":
		reply(w, e.summary())
	case "/stream":
		e.stream(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (e *Endpoint) summary() why.Summary {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return why.Summary{Controllers: []why.ControllerSummary{{
		Name: controller, Kind: kindApp, Reconciles: e.reconciles, Causes: maps.Clone(e.causes), Folded: e.folded, Writes: e.writes,
		NoOp: e.finds[why.NoOp], SelfInflicted: e.finds[why.SelfInflicted], Loops: e.finds[why.Loop],
	}}}
}

func (e *Endpoint) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if r.Method == http.MethodHead {
		return
	}
	control := http.NewResponseController(w)
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	if last, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		after = last
	}
	for {
		records, news := e.after(after)
		for _, record := range records {
			data, err := json.Marshal(record)
			if err != nil || control.SetWriteDeadline(time.Now().Add(10*time.Second)) != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "event: record\nid: %d\ndata: %s\n\n", record.ID, data); err != nil {
				return
			}
			after = record.ID
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}

func reply(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
