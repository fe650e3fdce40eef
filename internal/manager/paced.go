// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// eventsPerSecond and eventsBurst limit the events that are sent while the manager writes objects.
	eventsPerSecond, eventsBurst = 5, 10
	// eventsAtOnce is how many events are sent at the same time, without those that are overdue.
	eventsAtOnce = 4
	// The manager is at rest when it has sent no other write for this long. Then all events are sent.
	atRest = 250 * time.Millisecond
	// maxEventDelay limits how long an event waits, and mostWaiting how many wait, because each takes some memory. If there are
	// more, the oldest are sent.
	maxEventDelay, mostWaiting = 30 * time.Second, 200
	// lastEvents limits how long the manager takes to send the waiting events when it stops.
	lastEvents = 2 * time.Second
)

// pacedEvents delays Kubernetes events while the manager has much else to write. client-go sends each event at once and
// concurrently, and the API server's priority and fairness counts them like the manager's other requests. So when hundreds of
// objects are created or changed together, their events would delay the work that they report. An event has the time at which
// it happened, not the time at which it was sent. Warnings and repetitions are not delayed.
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
	waiting int       // events that are not being sent yet
	writing int       // writes in progress
	wrote   time.Time // when the last one began or ended
	// creating are the new events that have not been answered.
	creating map[*newEvent]bool
}

// newEvent is an event that is being created.
type newEvent struct {
	content []byte
	sent    chan struct{} // closed when the API server has answered, or the request has failed
}

// newPacedEvents returns the pace of a manager that may take as long as grace to stop.
func newPacedEvents(grace time.Duration) *pacedEvents {
	return &pacedEvents{
		limiter: rate.NewLimiter(eventsPerSecond, eventsBurst), turn: make(chan struct{}, 1), sending: make(chan struct{}, eventsAtOnce),
		stopping: make(chan struct{}), grace: grace, creating: map[*newEvent]bool{},
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
	done, err := t.paced.begin(r)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	defer done()
	return t.next.RoundTrip(r)
}

// begin returns when a request may be sent. The caller calls done after that.
func (p *pacedEvents) begin(r *http.Request) (done func(), err error) {
	switch {
	case r.Method == http.MethodGet || isLease(r):
		return func() {}, nil
	case !isEvent(r):
		p.count(1)
		return func() { p.count(-1) }, nil
	case r.Method != http.MethodPost:
		return func() {}, p.awaitEvent(r)
	}
	content := contentOf(r)
	if isUrgent(content) {
		return func() {}, nil
	}
	event := p.expect(content)
	sent, err := p.await(r.Context())
	if err != nil {
		p.sent(event)
		return nil, err
	}
	return func() {
		sent()
		p.sent(event)
	}, nil
}

// WrappedRoundTripper implements net.RoundTripperWrapper, so that the connections below can be closed.
func (t *pacedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isEvent reports whether a request creates an event, or patches it because the same has happened again.
func isEvent(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/events.k8s.io/") }

// isUrgent reports whether an event is a warning, or one that client-go sends while it holds a lock that all events need: the
// repetition of an event that is gone. Either word may also be in its message, which does not matter.
func isUrgent(content []byte) bool {
	return bytes.Contains(content, []byte("Warning")) || bytes.Contains(content, []byte(`"series"`))
}

// contentOf returns the body of a request that can be read twice, as client-go's can.
func contentOf(r *http.Request) []byte {
	if r.GetBody == nil {
		return nil
	}
	body, err := r.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	content, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	return content
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

// wait changes the number of events that wait.
func (p *pacedEvents) wait(change int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.waiting += change
}

// untilRest returns when the manager is at rest at the earliest, and 0 if it is.
func (p *pacedEvents) untilRest() time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.writing > 0 {
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
	// An API server that answers slowly must not let the queue grow.
	for !p.isOverdue(due) {
		select {
		case p.sending <- struct{}{}:
			return func() { <-p.sending }, nil
		case <-time.After(min(atRest, time.Until(due))):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return func() {}, nil
}

// isOverdue reports whether an event has waited for long enough, or too many wait.
func (p *pacedEvents) isOverdue(due time.Time) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.waiting > mostWaiting || !time.Now().Before(due)
}

func (p *pacedEvents) expect(content []byte) *newEvent {
	event := &newEvent{content, make(chan struct{})}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.creating[event] = true
	return event
}

func (p *pacedEvents) sent(event *newEvent) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.creating, event)
	close(event.sent)
}

// awaitEvent returns when the event that a request patches has been created. Without it, the patch would fail.
func (p *pacedEvents) awaitEvent(r *http.Request) error {
	name := []byte(path.Base(r.URL.Path))
	p.mutex.Lock()
	var before []*newEvent
	for event := range p.creating {
		if bytes.Contains(event.content, name) {
			before = append(before, event)
		}
	}
	p.mutex.Unlock()
	for _, event := range before {
		select {
		case <-event.sent:
		case <-r.Context().Done():
			return r.Context().Err()
		}
	}
	return nil
}

func take(ctx context.Context, place chan<- struct{}) error {
	select {
	case place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause waits until the manager is at rest, an event is within the rate, or this one is overdue.
func (p *pacedEvents) pause(ctx context.Context, due time.Time) error {
	reserved := p.limiter.Reserve()
	within := time.Now().Add(reserved.Delay())
	for {
		wait := min(p.untilRest(), time.Until(within), time.Until(due))
		if wait <= 0 || p.isOverdue(due) {
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
// after a limited time: the controllers stop after that, and what they still record is not delayed any more.
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

// NeedLeaderElection makes the manager stop this before the controllers, and wait for it.
func (p *pacedEvents) NeedLeaderElection() bool { return false }
