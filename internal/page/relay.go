// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/why"
)

const (
	// askAgain is how long a process is left alone that does not serve what it records, or not yet.
	askAgain = 200 * time.Millisecond
	// lateness is how long after it began to work a process may begin to serve, before it is taken for one that never does.
	lateness = time.Second
	// lastWords is how long it may take to read what a process sent before it ended.
	lastWords = time.Second
	// answerTimeout is how long a process may take to answer a question.
	answerTimeout = 5 * time.Second
	// keptStarts is how many starts are told.
	keptStarts = 100
)

// operatorState is what is known about the process of an operator.
type operatorState string

const (
	operatorStarting  operatorState = "starting"
	operatorRecording operatorState = "recording"
	operatorSilent    operatorState = "silent" // it works, and serves no records
	operatorEnded     operatorState = "ended"
)

// Relay gathers what the processes of an operator record, one process after the other, and serves that as one recorder
// would. Processes come and go during development; what they have recorded stays.
//
// It is told about them by Begin, Works and End. A nil Relay is that of an operator in this process.
type Relay struct {
	// Inferring says that records of processes that serve none are inferred, and come by Infer.
	Inferring bool

	kept     *why.Recorder
	findings *findings.Tracker
	client   *http.Client

	mutex   sync.Mutex
	current *process
	state   operatorState
	starts  []time.Time
	last    uint64      // the highest ID so far
	lost    uint64      // records that were gone before they could be read
	summary why.Summary // the latest that a process has told
	counts  counts      // of records that were inferred
	version uint64
	news    chan struct{}
}

// process is one that is followed.
type process struct {
	address string
	// offset is added to the IDs of its records, which begin anew with each process.
	offset uint64
	works  time.Time // zero while it starts
	served bool      // it has served records
	// inferred says that it serves no records, so those that were inferred take their place. Until that is known they wait.
	inferred bool
	waiting  []*why.Record
	// shift is added to the IDs of inferred records, once there is one.
	shift   uint64
	shifted bool
	ended   bool
	quit    chan struct{} // closed when it has ended
	cancel  context.CancelFunc
	done    chan struct{} // closed when nobody follows it any more
}

// NewRelay returns a relay that knows of no process yet.
func NewRelay() *Relay {
	return &Relay{
		// Loopback needs no proxy, and must not get one.
		kept: why.New(why.Options{}), findings: findings.NewTracker(), client: &http.Client{Transport: &http.Transport{Proxy: nil, ResponseHeaderTimeout: answerTimeout}},
		state: operatorStarting, news: make(chan struct{}),
	}
}

// Findings tracks what goes wrong in the current process.
func (r *Relay) Findings() *findings.Tracker { return r.findings }

// Begin says that a process was started that serves what it records at an address, if it records anything. The address is
// empty if the process was told to serve nothing.
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

// Works says that the process has come as far as to do its work.
func (r *Relay) Works() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.current != nil {
		r.current.works = time.Now()
	}
}

// End says that the process has ended, and returns when everything that it has told was read.
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

// follow reads what a process records until it has ended.
func (r *Relay) follow(ctx context.Context, p *process) {
	after := uint64(0)
	pause := time.NewTicker(askAgain)
	defer pause.Stop()
	for {
		if p.address != "" {
			after = r.read(ctx, p, after)
		}
		r.mutex.Lock()
		var inferred []*why.Record
		if !p.ended && !p.served && !p.works.IsZero() && time.Since(p.works) > lateness {
			inferred = r.giveUp(p)
		}
		r.mutex.Unlock()
		for _, record := range inferred {
			r.takeInferred(p, record)
		}
		select {
		case <-pause.C:
		case <-p.quit:
			return
		case <-ctx.Done():
			return
		}
	}
}

// read follows the stream of a process until it breaks off, and returns the ID to go on after.
func (r *Relay) read(ctx context.Context, p *process, after uint64) uint64 {
	body, err := r.open(ctx, p.address, "stream?after="+strconv.FormatUint(after, 10), "text/event-stream")
	if err != nil {
		return after
	}
	defer body.Close()
	r.mutex.Lock()
	p.served = true
	if !p.ended {
		r.become(operatorRecording)
	}
	r.mutex.Unlock()
	// It may end before anybody asks for totals.
	_ = r.ask(ctx, p.address)
	// However it ends, the process is asked again as long as it runs.
	_ = ReadRecords(body, func(record *why.Record, lost uint64) error {
		if record != nil {
			after = record.ID
		}
		r.take(p, record, lost)
		return nil
	})
	return after
}

// giveUp is for a process that serves no records, and returns those that were inferred so far. It needs the mutex.
func (r *Relay) giveUp(p *process) (inferred []*why.Record) {
	if !r.Inferring {
		r.become(operatorSilent)
		return nil
	}
	p.inferred, inferred, p.waiting = true, p.waiting, nil
	r.become(operatorRecording)
	return inferred
}

// maxWaiting is how many inferred records wait until it is known whether the process serves its own.
const maxWaiting = 1000

// Infer takes a record that was made by watching the current process from outside. It counts only if the process itself
// records nothing.
func (r *Relay) Infer(record *why.Record) {
	r.mutex.Lock()
	p := r.current
	switch {
	case p == nil || p.served:
		r.mutex.Unlock()
	case p.inferred:
		r.mutex.Unlock()
		r.takeInferred(p, record)
	default:
		if len(p.waiting) < maxWaiting {
			p.waiting = append(p.waiting, record)
		}
		r.mutex.Unlock()
	}
}

// takeInferred keeps a record whose IDs go on from process to process.
func (r *Relay) takeInferred(p *process, record *why.Record) {
	r.mutex.Lock()
	if !p.shifted {
		p.shifted = true
		if record.ID <= r.last {
			p.shift = r.last - record.ID + 1
		}
	}
	r.counts.add(record)
	r.keep(record, p.shift)
}

// take keeps a record under an ID of its own.
func (r *Relay) take(p *process, record *why.Record, lost uint64) {
	r.mutex.Lock()
	r.lost += lost
	if record == nil {
		r.mutex.Unlock()
		return
	}
	r.keep(record, p.offset)
}

// keep gives back the mutex.
func (r *Relay) keep(record *why.Record, offset uint64) {
	record.ID += offset
	for i := range record.Causes {
		if write := record.Causes[i].Write; write != nil {
			write.Record += offset
		}
	}
	r.last = max(r.last, record.ID)
	r.mutex.Unlock()
	r.findings.Add(record)
	r.kept.Gather(record)
}

// open asks a process for something of a kind.
func (r *Relay) open(ctx context.Context, address, what, kind string) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/why/"+what, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK || !strings.HasPrefix(response.Header.Get("Content-Type"), kind) {
		response.Body.Close()
		return nil, fmt.Errorf("the operator responded with %s", response.Status)
	}
	return response.Body, nil
}

// ask asks a process what it has counted.
func (r *Relay) ask(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	body, err := r.open(ctx, address, "summary", "application/json")
	if err != nil {
		return err
	}
	defer body.Close()
	var summary why.Summary
	if err := json.NewDecoder(body).Decode(&summary); err != nil {
		return fmt.Errorf("reading the operator's summary: %w", err)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.summary = summary
	return nil
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
		// One that does not answer has counted what it said last.
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

// operatorMessage is what a page is told about the operator.
type operatorMessage struct {
	State operatorState `json:"state"`
	// Starts are when its latest processes were started; the first of all is among them unless there were very many.
	Starts []time.Time `json:"starts"`
}

// since returns what is to be told to whoever has seen a version, nil if that is the latest.
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
