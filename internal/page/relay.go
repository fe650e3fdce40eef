// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/why"
)

const (
	// lastWords is the time to read the last records of a process that has ended.
	lastWords = time.Second
	// keptStarts is the number of starts that are kept.
	keptStarts = 100
)

// operatorState is the state of the operator's process.
type operatorState string

const (
	operatorStarting  operatorState = "starting"
	operatorRecording operatorState = "recording"
	operatorSilent    operatorState = "silent" // it works, and serves no records
	operatorEnded     operatorState = "ended"
)

// Relay gathers the records of an operator's processes, one process after the other, and serves them like a single
// recorder. Processes come and go during development; their records stay.
//
// Begin, Works and End report the processes. A nil Relay means that the operator runs in this process.
type Relay struct {
	// Inferring means that records are inferred for processes that serve none, and passed to Infer.
	Inferring bool

	kept     *why.Recorder
	findings *findings.Tracker
	client   *http.Client

	mutex   sync.Mutex
	current *process
	state   operatorState
	starts  []time.Time
	last    uint64      // the highest ID so far
	lost    uint64      // records that were dropped before they could be read
	summary why.Summary // the latest summary of a process
	counts  counts      // of records that were inferred
	version uint64
	news    chan struct{}
}

// process is one that is followed.
type process struct {
	address string
	// offset is added to the IDs of its records, which start at 1 in each process.
	offset uint64
	works  time.Time // zero while it starts
	served bool      // it has served records
	// inferred means that it serves no records, so inferred ones are used. Until that is known, they wait.
	inferred     bool
	waiting      []*why.Record
	waitingSince time.Time // zero while there are none
	// shift is added to the IDs of inferred records, once there is one.
	shift   uint64
	shifted bool
	ended   bool
	quit    chan struct{} // closed when it has ended
	cancel  context.CancelFunc
	done    chan struct{} // closed when it is no longer followed
}

// NewRelay returns a relay without a process.
func NewRelay() *Relay {
	return &Relay{
		// Loopback needs no proxy, and must not get one.
		kept: why.New(why.Options{}), findings: findings.NewTracker(), client: &http.Client{Transport: &http.Transport{Proxy: nil, ResponseHeaderTimeout: answerTimeout}},
		state: operatorStarting, news: make(chan struct{}),
	}
}

// Findings tracks problems in the current process.
func (r *Relay) Findings() *findings.Tracker { return r.findings }

// Begin reports that a process was started, with the address of its records, if it has any. The address is empty if
// the process serves none.
func (r *Relay) Begin(address string) {
	r.End()
	r.findings.Reset()
	ctx, cancel := context.WithCancel(context.Background())
	r.mutex.Lock()
	defer r.mutex.Unlock()
	p := &process{address: address, offset: r.last, cancel: cancel, quit: make(chan struct{}), done: make(chan struct{})}
	r.current = p
	r.starts = append(r.starts, time.Now())
	if len(r.starts) > keptStarts {
		r.starts = slices.Clone(r.starts[1:])
	}
	r.become(operatorStarting)
	go func() {
		defer close(p.done)
		defer cancel()
		r.follow(ctx, p)
	}()
}

// Works reports that the process is working.
func (r *Relay) Works() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.current != nil {
		r.current.works = time.Now()
	}
}

// End reports that the process has ended, and returns when all its records were read.
func (r *Relay) End() {
	r.mutex.Lock()
	p := r.current
	if p == nil || p.ended {
		r.mutex.Unlock()
		return
	}
	p.ended = true
	close(p.quit)
	r.become(operatorEnded)
	r.mutex.Unlock()
	select {
	case <-p.done:
	case <-time.After(lastWords):
		p.cancel()
		<-p.done
	}
}

// become needs the mutex.
func (r *Relay) become(state operatorState) {
	if r.state == state && state != operatorStarting {
		return
	}
	r.state = state
	r.version++
	close(r.news)
	r.news = make(chan struct{})
}

// ServeHTTP serves records, summary and stream as a recorder does. The summary counts for the latest process that has
// recorded anything.
func (r *Relay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if path.Base(request.URL.Path) != "summary" {
		r.kept.HTTPHandler().ServeHTTP(w, request)
		return
	}
	r.mutex.Lock()
	address := ""
	if r.current != nil && r.state == operatorRecording && !r.current.inferred {
		address = r.current.address
	}
	silent := r.state == operatorSilent && r.last == 0
	r.mutex.Unlock()
	if silent {
		refuse(w, http.StatusConflict, "this operator does not use package why, so its reconciles are not recorded: see docs/why.md")
		return
	}
	if address != "" {
		// If it does not respond, its last totals are used.
		_ = r.ask(request.Context(), address)
	}
	kept := r.kept.Summary()
	r.mutex.Lock()
	summary := r.summary
	kept.Dropped.Records += r.lost
	inferred := r.counts.summaries()
	r.mutex.Unlock()
	summary.Version = cmp.Or(summary.Version, kept.Version)
	if summary.Controllers == nil {
		summary.Controllers, summary.Since = inferred, kept.Since
	}
	summary.Last, summary.Kept, summary.Dropped = kept.Last, kept.Kept, kept.Dropped
	answer(w, summary)
}

// operatorMessage is the message to a page about the operator.
type operatorMessage struct {
	State operatorState `json:"state"`
	// Starts are when its latest processes were started; the first of all is among them unless there were very many.
	Starts []time.Time `json:"starts"`
}

// since returns the message for a page that has seen a version; nil if it is the latest.
func (r *Relay) since(seen uint64) (*operatorMessage, uint64) {
	if r == nil {
		return nil, seen
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.version == seen {
		return nil, seen
	}
	return &operatorMessage{State: r.state, Starts: slices.Clone(r.starts)}, r.version
}

func (r *Relay) next() <-chan struct{} {
	if r == nil {
		return nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.news
}
