// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// eventsPerSecond and eventsBurst limit the events that are sent while the manager writes objects.
	eventsPerSecond, eventsBurst = 5, 10
	// eventsAtOnce is how many events are sent at the same time.
	eventsAtOnce = 4
	// atRest is how long the manager has sent no other write when it is at rest. Then all events are sent.
	atRest = 250 * time.Millisecond
	// maxEventDelay limits how late an event can be, and mostWaiting how many wait, because each takes some memory.
	maxEventDelay, mostWaiting = 30 * time.Second, 200
	// lastEvents limits how long the manager takes to send the waiting events when it stops.
	lastEvents = 2 * time.Second
)

// pacedEvents delays Kubernetes events while the manager has much else to write. client-go sends each event at once and
// concurrently, and the API server's priority and fairness counts them like the manager's other requests. So when hundreds of
// objects are created or changed together, their events would delay the work that they report. An event has the time at which
// it happened, not the time at which it was sent. Warnings are not delayed.
type pacedEvents struct {
	limiter *rate.Limiter
	// turn is held by the event that waits for time to pass. The others wait for their turn, in order.
	turn chan struct{}
	// sending has room for the events that are being sent.
	sending chan struct{}
	// stopping is closed when the manager stops.
	stopping chan struct{}
	// grace limits how long the manager takes to stop.
	grace time.Duration

	mutex   sync.Mutex
	writing int       // writes in progress
	wrote   time.Time // when the last one began or ended
	waiting int       // events that wait
}

// newPacedEvents returns the pace of a manager that may take as long as grace to stop.
func newPacedEvents(grace time.Duration) *pacedEvents {
	return &pacedEvents{
		limiter: rate.NewLimiter(eventsPerSecond, eventsBurst), turn: make(chan struct{}, 1), sending: make(chan struct{}, eventsAtOnce),
		stopping: make(chan struct{}), grace: grace,
	}
}

// wrap is a transport wrapper for rest.Config. All transports of a manager share one pace.
func (p *pacedEvents) wrap(next http.RoundTripper) http.RoundTripper { return &pacedTransport{next, p} }

// pacedTransport is a transport whose events are paced.
type pacedTransport struct {
	next  http.RoundTripper
	paced *pacedEvents
}

// RoundTrip implements http.RoundTripper.
func (t *pacedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.Method == http.MethodGet:
	case isEvent(r):
		if isWarning(r) {
			break
		}
		done, err := t.paced.await(r.Context())
		if err != nil {
			if r.Body != nil {
				r.Body.Close()
			}
			return nil, err
		}
		defer done()
	case !isLease(r):
		t.paced.count(1)
		defer t.paced.count(-1)
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper, so that the connections below can be closed.
func (t *pacedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isEvent reports whether a request writes an event: a new one, or how often one has happened again.
func isEvent(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/events.k8s.io/") }

// isWarning reports whether an event may be a warning: all of them contain the word, in each encoding.
func isWarning(r *http.Request) bool {
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	data, err := io.ReadAll(body)
	return err == nil && bytes.Contains(data, []byte("Warning"))
}

// isLease reports whether a request is for leader election, which is not work.
func isLease(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/coordination.k8s.io/") }

// count changes the number of writes in progress.
func (p *pacedEvents) count(change int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.writing += change
	p.wrote = time.Now()
}

// untilRest returns when the manager is at rest at the earliest, and 0 if it is, or if too many events wait.
func (p *pacedEvents) untilRest() time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case p.waiting > mostWaiting:
		return 0
	case p.writing > 0:
		return atRest
	}
	return max(0, atRest-time.Since(p.wrote))
}

// await returns when an event may be sent. The caller calls done after that.
func (p *pacedEvents) await(ctx context.Context) (done func(), err error) {
	due := time.Now().Add(maxEventDelay)
	p.wait(1)
	defer p.wait(-1)
	if err := take(ctx, p.turn); err != nil {
		return nil, err
	}
	defer func() { <-p.turn }()
	if err := p.pause(ctx, due); err != nil {
		return nil, err
	}
	// This keeps the turn, so the order of events is kept.
	if err := take(ctx, p.sending); err != nil {
		return nil, err
	}
	return func() { <-p.sending }, nil
}

// wait changes the number of waiting events.
func (p *pacedEvents) wait(change int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.waiting += change
}

func take(ctx context.Context, place chan<- struct{}) error {
	select {
	case place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause waits until the manager is at rest, an event is within the rate, or this one is due.
func (p *pacedEvents) pause(ctx context.Context, due time.Time) error {
	reserved := p.limiter.Reserve()
	within := time.Now().Add(reserved.Delay())
	for {
		wait := min(p.untilRest(), time.Until(within), time.Until(due))
		if wait <= 0 {
			if time.Now().Before(within) {
				reserved.Cancel()
			}
			return nil
		}
		select {
		case <-time.After(wait):
		case <-p.stopping:
			return nil
		case <-ctx.Done():
			reserved.Cancel()
			return ctx.Err()
		}
	}
}

// Start implements manager.Runnable. When the manager stops, it returns after the events that are waiting have been sent, or
// soon: the controllers stop after that, and what they still record is not delayed any more.
func (p *pacedEvents) Start(ctx context.Context) error {
	<-ctx.Done()
	close(p.stopping)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(lastEvents, p.grace/4))
	defer cancel()
	if take(limited, p.turn) != nil { // all events that are waiting were before this
		return nil
	}
	defer func() { <-p.turn }()
	for range eventsAtOnce { // and those that are being sent
		if take(limited, p.sending) != nil {
			break
		}
		defer func() { <-p.sending }()
	}
	return nil
}

// NeedLeaderElection makes this run also without being the leader, so that it has begun when the first event is recorded.
func (p *pacedEvents) NeedLeaderElection() bool { return false }
