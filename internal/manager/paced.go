// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// eventsPerSecond and eventsBurst limit the events that are sent while the manager writes objects.
	eventsPerSecond, eventsBurst = 5, 10
	// atRest is how long the manager has sent no other write when it is at rest. Then all events are sent.
	atRest = 250 * time.Millisecond
	// maxEventDelay limits how late an event can be.
	maxEventDelay = 30 * time.Second
	// lastEvents is how long the manager goes on sending events when it stops.
	lastEvents = 3 * time.Second
)

// pacedEvents delays Kubernetes events while the manager has much else to write. client-go sends each event at once and
// concurrently, and the API server's priority and fairness counts them like the manager's other requests. So when hundreds of
// objects are created or changed together, their events would delay the work that they report. An event has the time at which
// it happened, not the time at which it was sent, and none is dropped.
type pacedEvents struct {
	next    http.RoundTripper
	limiter *rate.Limiter
	// turn is held by the only event that is being sent or waits for time to pass.
	turn chan struct{}
	// stopping is closed when the manager stops.
	stopping chan struct{}

	mutex   sync.Mutex
	writing int       // writes in progress
	wrote   time.Time // when the last one began or ended
}

func newPacedEvents() *pacedEvents {
	return &pacedEvents{
		limiter: rate.NewLimiter(eventsPerSecond, eventsBurst), turn: make(chan struct{}, 1), stopping: make(chan struct{}),
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
	case isNewEvent(r):
		done, err := t.paced.await(r.Context())
		if err != nil {
			return nil, err
		}
		defer done()
	case !isLease(r):
		defer t.paced.write()()
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper, so that the connections below can be closed.
func (t *pacedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isNewEvent reports whether a request creates an event. Repetitions of an event are patches, and rare.
func isNewEvent(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/apis/events.k8s.io/")
}

// isLease reports whether a request is for leader election, which is not work.
func isLease(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/coordination.k8s.io/") }

// write counts a write until the returned function is called.
func (p *pacedEvents) write() (done func()) {
	p.count(1)
	return func() { p.count(-1) }
}

func (p *pacedEvents) count(change int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.writing += change
	p.wrote = time.Now()
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
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done = func() { <-p.turn }
	if err := p.pause(ctx, due); err != nil {
		done()
		return nil, err
	}
	return done, nil
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

// Start implements manager.Runnable. When the manager stops, it returns after the events that are waiting have been sent.
func (p *pacedEvents) Start(ctx context.Context) error {
	<-ctx.Done()
	close(p.stopping)
	select {
	case p.turn <- struct{}{}: // all others were before this one
		<-p.turn
	case <-time.After(lastEvents):
	}
	return nil
}

// NeedLeaderElection makes the manager stop this after its controllers, which may still record events.
func (p *pacedEvents) NeedLeaderElection() bool { return false }
