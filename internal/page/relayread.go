// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/why"
)

const (
	// askAgain is the interval of requests to a process that does not serve its records yet.
	askAgain = 200 * time.Millisecond
	// lateness is how long after it began to work a process may begin to serve, before it is taken for one that never does.
	lateness = time.Second
	// unreported is how long inferred records wait if nothing reports that the process works: they show that it does. One of
	// several controllers may wait for something, such as a kind, forever.
	unreported = 5 * time.Second
	// answerTimeout is how long a process may take to answer a question.
	answerTimeout = 5 * time.Second
	// maxWaiting is the maximum number of inferred records that wait until it is known whether the process serves its
	// own.
	maxWaiting = 1000
)

// follow reads the records of a process until it has ended.
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
		if !p.ended && !p.served && !p.inferred && p.hasHadTime(time.Now()) {
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

// hasHadTime reports whether a process would serve its records by now if it did so at all.
func (p *process) hasHadTime(now time.Time) bool {
	return !p.works.IsZero() && now.Sub(p.works) > lateness || !p.waitingSince.IsZero() && now.Sub(p.waitingSince) > unreported
}

// read follows the stream of a process until it breaks off, and returns the ID to go on after.
func (r *Relay) read(ctx context.Context, p *process, after uint64) uint64 {
	body, err := r.open(ctx, p.address, "stream?after="+strconv.FormatUint(after, 10), "text/event-stream")
	if err != nil {
		return after
	}
	defer body.Close()
	r.mutex.Lock()
	if !p.served {
		// Records may have been inferred: it writes something long before its manager starts. Its own come after them.
		p.served, p.inferred, p.offset = true, false, r.last
	}
	if !p.ended {
		r.become(operatorRecording)
	}
	r.mutex.Unlock()
	// It may end before the totals are requested.
	_ = r.ask(ctx, p.address)
	// The stream is opened again as long as the process runs.
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

// Infer takes a record that was inferred for the current process. It is used only if the process serves no records.
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
		if p.waitingSince.IsZero() {
			p.waitingSince = time.Now()
		}
		if len(p.waiting) < maxWaiting {
			p.waiting = append(p.waiting, record)
		}
		r.mutex.Unlock()
	}
}

// takeInferred keeps a record whose IDs continue from process to process.
func (r *Relay) takeInferred(p *process, record *why.Record) {
	r.mutex.Lock()
	if p.served {
		r.mutex.Unlock()
		return // meanwhile
	}
	if !p.shifted {
		p.shifted = true
		if record.ID <= r.last {
			p.shift = r.last - record.ID + 1
		}
	}
	r.counts.add(record)
	r.keep(record, p.shift)
}

// take keeps a record under a new ID.
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

// open sends a request to a process.
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

// ask requests the totals of a process.
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
