// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	maxEventDelay, mostWaiting = 30 * time.Second, 1000
	// lastEvents limits how long the manager takes to send the waiting events when it stops.
	lastEvents = 2 * time.Second
	// An event that does not reach the API server is sent again after eventRetry, mostAttempts times in all, as client-go does.
	eventRetry, mostAttempts = 10 * time.Second, 12
)

// pacedEvents delays Kubernetes events while the manager has much else to write. client-go sends each event at once and
// concurrently, and the API server's priority and fairness counts them like the manager's other requests. So when hundreds of
// objects are created or changed together, their events would delay the work that they report. An event has the time at which
// it happened, not the time at which it was sent. Warnings and repetitions are not delayed.
//
// It is the sink of a broadcaster of client-go, which calls it in a goroutine for each event. It takes an event and returns,
// because the stack of a goroutine that waits takes several times the memory of the event.
type pacedEvents struct {
	next    events.EventSink // sends events; set before the first
	log     logr.Logger
	limiter *rate.Limiter
	// sending has room for the events that are being sent.
	sending chan struct{}
	// stopping is closed when the manager stops.
	stopping chan struct{}
	// grace limits how long the manager takes to stop.
	grace time.Duration

	mutex   sync.Mutex
	waiting []*waitingEvent
	arrived chan struct{} // has an element if there may be a new one in waiting
	writing int           // writes in progress
	wrote   time.Time     // when the last one began or ended
	ended   bool          // events are not delayed any more
	// unsent are the events that the API server has not answered.
	unsent map[client.ObjectKey]*waitingEvent
}

// waitingEvent is an event that is to be created.
type waitingEvent struct {
	*eventsv1.Event
	due  time.Time
	sent chan struct{} // closed when the API server has answered, or the event is given up
}

// newPacedEvents returns the pace of a manager that may take as long as grace to stop.
func newPacedEvents(log logr.Logger, grace time.Duration) *pacedEvents {
	return &pacedEvents{
		log: log, limiter: rate.NewLimiter(eventsPerSecond, eventsBurst), sending: make(chan struct{}, eventsAtOnce),
		stopping: make(chan struct{}), grace: grace, arrived: make(chan struct{}, 1), unsent: map[client.ObjectKey]*waitingEvent{},
	}
}

// Create implements events.EventSink. client-go calls it for the repetition of an event that is gone while it holds a lock that all
// events need.
func (p *pacedEvents) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	isUrgent := event.Type == corev1.EventTypeWarning || event.Series != nil
	if isUrgent || !p.add(event) {
		return p.next.Create(ctx, event)
	}
	return event, nil
}

// Update implements events.EventSink.
func (p *pacedEvents) Update(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	return p.next.Update(ctx, event)
}

// Patch implements events.EventSink. It repeats an event, so it waits until that has been created.
func (p *pacedEvents) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	p.mutex.Lock()
	before := p.unsent[client.ObjectKeyFromObject(event)]
	p.mutex.Unlock()
	if before != nil {
		select {
		case <-before.sent:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return p.next.Patch(ctx, event, data)
}

// add lets an event wait, unless the manager has stopped.
func (p *pacedEvents) add(event *eventsv1.Event) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.ended {
		return false
	}
	one := &waitingEvent{event, time.Now().Add(maxEventDelay), make(chan struct{})}
	p.waiting, p.unsent[client.ObjectKeyFromObject(event)] = append(p.waiting, one), one
	select {
	case p.arrived <- struct{}{}:
	default:
	}
	return true
}

// Start implements manager.Runnable. When the manager stops, it returns after the events that are waiting have been sent, or
// after a limited time: the controllers stop after that, and what they still record is not delayed any more.
func (p *pacedEvents) Start(ctx context.Context) error {
	var all sync.WaitGroup
	done := make(chan struct{})
	go func() {
		p.sendAll(context.WithoutCancel(ctx), &all)
		all.Wait()
		close(done)
	}()
	<-ctx.Done()
	p.mutex.Lock()
	p.ended = true
	p.mutex.Unlock()
	close(p.stopping)
	select {
	case <-done:
	case <-time.After(min(lastEvents, p.grace/4)):
	}
	return nil
}

// NeedLeaderElection makes the manager stop this before the controllers, and wait for it.
func (p *pacedEvents) NeedLeaderElection() bool { return false }

// sendAll sends events in their order, until the manager stops and none is left.
func (p *pacedEvents) sendAll(ctx context.Context, all *sync.WaitGroup) {
	for {
		event := p.first()
		if event == nil {
			return
		}
		p.pause(event)
		hasPlace := p.takePlace(event)
		p.mutex.Lock()
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		p.mutex.Unlock()
		all.Go(func() {
			p.send(ctx, event)
			if hasPlace {
				<-p.sending
			}
		})
	}
}

// first waits for an event; nil if the manager stops and none is left.
func (p *pacedEvents) first() *waitingEvent {
	for {
		p.mutex.Lock()
		var first *waitingEvent
		if len(p.waiting) > 0 {
			first = p.waiting[0]
		}
		ended := p.ended
		p.mutex.Unlock()
		if first != nil || ended {
			return first
		}
		select {
		case <-p.arrived:
		case <-p.stopping:
		}
	}
}

// pause waits until the manager is at rest, an event is within the rate, or it is overdue.
func (p *pacedEvents) pause(event *waitingEvent) {
	reserved := p.limiter.Reserve()
	within := time.Now().Add(reserved.Delay())
	for {
		wait := min(p.untilRest(), time.Until(within), time.Until(event.due))
		if wait <= 0 || p.isOverdue(event) {
			if time.Now().Before(within) {
				reserved.Cancel()
			}
			return
		}
		select {
		case <-time.After(wait):
		case <-p.stopping:
			return
		}
	}
}

// takePlace waits for a place among the events that are being sent, and reports whether there was one: an API server that answers
// slowly must not let the queue grow.
func (p *pacedEvents) takePlace(event *waitingEvent) bool {
	for !p.isOverdue(event) {
		select {
		case p.sending <- struct{}{}:
			return true
		case <-time.After(min(atRest, time.Until(event.due))):
		}
	}
	return false
}

// send sends an event, again if it does not arrive. An event that the API server refuses is lost.
func (p *pacedEvents) send(ctx context.Context, event *waitingEvent) {
	defer func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.unsent, client.ObjectKeyFromObject(event))
		close(event.sent)
	}()
	for attempt := 1; ; attempt++ {
		_, err := p.next.Create(ctx, event.Event)
		switch {
		case err == nil:
			return
		case apierrors.ReasonForError(err) != "" || attempt == mostAttempts:
			p.log.Error(err, "An event was not recorded", "namespace", event.Namespace, "name", event.Name, "reason", event.Reason)
			return
		}
		select {
		case <-time.After(eventRetry):
		case <-p.stopping:
			return
		}
	}
}

// isOverdue reports whether an event has waited for long enough, or too many wait.
func (p *pacedEvents) isOverdue(event *waitingEvent) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return len(p.waiting) > mostWaiting || !time.Now().Before(event.due)
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

// count changes the number of writes in progress.
func (p *pacedEvents) count(change int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.writing += change
	p.wrote = time.Now()
}

// wrap is a transport wrapper for rest.Config, which counts the writes for which events wait.
func (p *pacedEvents) wrap(next http.RoundTripper) http.RoundTripper {
	return &countedTransport{next, p}
}

// countedTransport is a transport whose writes are counted.
type countedTransport struct {
	next  http.RoundTripper
	paced *pacedEvents
}

// RoundTrip implements http.RoundTripper.
func (t *countedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !isLease(r) && !isEvent(r) {
		t.paced.count(1)
		defer t.paced.count(-1)
	}
	return t.next.RoundTrip(r)
}

// WrappedRoundTripper implements net.RoundTripperWrapper, so that the connections below can be closed.
func (t *countedTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// isEvent reports whether a request writes an event.
func isEvent(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/events.k8s.io/") }

// isLease reports whether a request is for leader election, which is not work.
func isLease(r *http.Request) bool { return strings.Contains(r.URL.Path, "/apis/coordination.k8s.io/") }
