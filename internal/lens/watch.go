// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// watching is the shared state of the deliveries of one watch.
type watching struct {
	id       uint64
	resource Resource
	as       encoding
	// initial means that the initial objects are still being delivered. It belongs to the observer.
	initial bool
	// selects means that it has a selector: an object that leaves the selection is reported as deleted.
	selects bool
}

// watch returns the body of a watch for the client. Without Faults, bytes are forwarded as they
// arrive; with Faults, event by event.
func (x *exchange) watch(ctx context.Context, as encoding, response *http.Response) io.ReadCloser {
	w := &watching{id: x.Request.ID, resource: x.Request.Resource, as: as}
	if query := x.Request.Query; query != nil {
		w.initial, w.selects = query.InitialEvents, query.LabelSelector != "" || query.FieldSelector != ""
	}
	body := &tapped{ReadCloser: response.Body, see: func(data []byte) { x.Request.BytesOut += int64(len(data)) }, ended: func(err error) {
		if errors.Is(err, errHungUp) || ctx.Err() != nil {
			err = nil // that is how watches end
		}
		x.finish(err)
	}}
	if as == encodedOther || response.Header.Get("Content-Encoding") != "" {
		x.Request.Undecoded = "the encoding " + x.Request.Encoding + " is not known"
		return body
	}
	split := &splitter{as: as}
	if x.lens.faults != nil {
		return &disturbed{tapped: body, ctx: ctx, exchange: x, watching: w, split: split}
	}
	count := body.see
	broken := false
	body.see = func(data []byte) {
		count(data)
		if broken {
			return
		}
		if err := split.add(data, func(_, event []byte) { x.lens.observer.observeFrame(w, event, Delivery{}) }); err != nil {
			broken, x.Request.Undecoded = true, err.Error()
		}
	}
	return body
}

// disturbed is the body of a watch whose events go through Faults.
type disturbed struct {
	*tapped

	ctx      context.Context //nolint:containedctx // of the request, which ends with the body
	exchange *exchange
	watching *watching
	split    *splitter

	events [][]byte // complete events that did not go through Faults yet, with their length prefix
	ready  []byte   // to be passed on
	err    error    // the bytes after these
}

// Read implements io.Reader.
func (d *disturbed) Read(p []byte) (int, error) {
	for len(d.ready) == 0 {
		if len(d.events) > 0 {
			event := d.events[0]
			d.events = d.events[1:]
			d.decide(event)
			continue
		}
		if d.err != nil {
			return 0, d.err
		}
		d.fill(p)
	}
	n := copy(p, d.ready)
	d.ready = d.ready[n:]
	return n, nil
}

// fill reads more, with p as its buffer.
func (d *disturbed) fill(p []byte) {
	n, err := d.tapped.Read(p)
	d.err = err
	if failed := d.split.add(p[:n], func(whole, _ []byte) { d.events = append(d.events, bytes.Clone(whole)) }); failed != nil {
		d.err = failed
	}
}

// decide asks Faults about an event.
func (d *disturbed) decide(whole []byte) {
	event := whole
	if d.watching.as == encodedProtobuf {
		event = whole[4:]
	}
	frame := &Frame{}
	if decoded, err := decodeEvent(event, d.watching.as); err == nil {
		frame.Type, frame.Object = decoded.Type, asUnstructured(decoded.Object)
	}
	began := time.Now()
	verdict := d.exchange.lens.faults.Deliver(d.ctx, &d.exchange.Call, frame)
	about := Delivery{Fault: verdict.Say}
	if held := time.Since(began); held > time.Millisecond {
		about.Held = held
	}
	switch verdict.Action {
	case Pass:
		d.ready = whole
		if d.watching.as == encodedJSON {
			// Clients that read line by line wait for the end of the line.
			d.ready = append(bytes.TrimSpace(whole), '\n')
		}
		d.exchange.lens.observer.observeFrame(d.watching, event, about)
	case Drop:
		if about.Fault == "" {
			about.Fault = "dropped"
		}
		d.exchange.lens.observer.observeFrame(d.watching, event, about)
	case End:
		d.exchange.Request.Fault = verdict.Say
		d.events, d.err = nil, io.EOF
	default:
		d.exchange.Request.Fault = verdict.Say
		d.events, d.err = nil, errors.New("the watch was aborted")
	}
}
