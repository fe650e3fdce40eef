// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	anEvent  = "/apis/events.k8s.io/v1/namespaces/default/events"
	aService = "/api/v1/namespaces/default/services"
	aLease   = "/apis/coordination.k8s.io/v1/namespaces/default/leases/manager"
)

// wire is an API server that takes a while for each request, and notes when requests arrive.
type wire struct {
	takes time.Duration
	began time.Time

	mutex    sync.Mutex
	arrived  map[string][]time.Duration // by path
	underWay map[string]int
	most     int // events at a time
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mutex.Lock()
	w.arrived[strings.TrimPrefix(r.URL.Path, "/prefix")] = append(w.arrived[strings.TrimPrefix(r.URL.Path, "/prefix")], time.Since(w.began))
	w.underWay[strings.TrimPrefix(r.URL.Path, "/prefix")]++
	w.most = max(w.most, w.underWay[anEvent])
	w.mutex.Unlock()
	time.Sleep(w.takes)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.underWay[strings.TrimPrefix(r.URL.Path, "/prefix")]--
	return httptest.NewRecorder().Result(), nil
}

// paced runs a test in a time that stands still, with a client whose events are paced.
func paced(t *testing.T, test func(t *testing.T, p *pacedEvents, w *wire, send func(method, path string, body ...string))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{takes: 5 * time.Millisecond, began: time.Now(), arrived: map[string][]time.Duration{}, underWay: map[string]int{}}
		p := newPacedEvents(time.Minute)
		transport := p.wrap(w)
		test(t, p, w, func(method, path string, body ...string) {
			// Like client-go, which sets GetBody.
			request, err := http.NewRequestWithContext(t.Context(), method, "https://server/prefix"+path, strings.NewReader(strings.Join(body, "")))
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := transport.RoundTrip(request); err != nil {
				t.Error(err)
			}
		})
	})
}

// within returns how many events arrived before a time.
func (w *wire) within(limit time.Duration) (count int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, at := range w.arrived[anEvent] {
		if at < limit {
			count++
		}
	}
	return count
}

func TestAnEventAtRestIsSentAtOnce(t *testing.T) {
	paced(t, func(t *testing.T, _ *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		for range 3 * eventsBurst {
			send(http.MethodPost, anEvent)
		}
		if got := w.within(3 * eventsBurst * w.takes); got != 3*eventsBurst {
			t.Errorf("%d of %d events were sent without a pause", got, 3*eventsBurst)
		}
	})
}

func TestEventsLetWritesPass(t *testing.T) {
	paced(t, func(t *testing.T, _ *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		const work, events = 4 * time.Second, 150
		var all sync.WaitGroup
		for range events {
			all.Go(func() { send(http.MethodPost, anEvent) })
		}
		for time.Since(w.began) < work {
			send(http.MethodPatch, aService)
		}
		if got, most := w.within(work), eventsBurst+eventsPerSecond*int(work/time.Second); got < eventsBurst || got > most {
			t.Errorf("%d events were sent beside other writes, want %d to %d", got, eventsBurst, most)
		}
		all.Wait()
		if got := w.within(work + atRest + events*w.takes); got != events {
			t.Errorf("%d of %d events were sent as soon as there was nothing else to write", got, events)
		}
		if w.most != eventsAtOnce {
			t.Errorf("%d events were sent at a time, want %d", w.most, eventsAtOnce)
		}
	})
}

func TestWarningsAreNotDelayed(t *testing.T) {
	paced(t, func(t *testing.T, _ *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		for range eventsBurst {
			send(http.MethodPost, anEvent)
		}
		before := len(w.arrived[anEvent])
		send(http.MethodPatch, aService)
		began := time.Since(w.began)
		send(http.MethodPost, anEvent, `{"type":"Warning"}`)
		if at := w.arrived[anEvent][before]; at != began {
			t.Errorf("the warning was sent %s late", at-began)
		}
	})
}

func TestOneEventThatHangsDoesNotHoldUpTheOthers(t *testing.T) {
	paced(t, func(t *testing.T, p *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		hanging, err := p.await(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer hanging()
		send(http.MethodPost, anEvent)
		if got := w.within(time.Second); got != 1 {
			t.Errorf("%d events were sent beside one that hangs", got)
		}
	})
}

// A repetition of an event is a patch of it, so it must not come before it.
func TestARepetitionComesAfterItsEvent(t *testing.T) {
	paced(t, func(t *testing.T, _ *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		for range eventsBurst {
			send(http.MethodPost, anEvent)
		}
		send(http.MethodPatch, aService)
		var both sync.WaitGroup
		both.Go(func() { send(http.MethodPost, anEvent, `{"metadata":{"name":"web.1"}}`) })
		synctest.Wait()
		both.Go(func() { send(http.MethodPatch, anEvent+"/web.1") })
		both.Wait()
		if first, again := w.arrived[anEvent][eventsBurst], w.arrived[anEvent+"/web.1"][0]; again < first+w.takes {
			t.Errorf("the repetition was sent at %s, and its event at %s", again, first)
		}
		began := time.Since(w.began)
		send(http.MethodPatch, anEvent+"/other.1")
		if at := w.arrived[anEvent+"/other.1"][0]; at != began {
			t.Errorf("the repetition of an event that is there was sent %s late", at-began)
		}
	})
}

func TestAnEventIsNotDelayedForEver(t *testing.T) {
	paced(t, func(t *testing.T, _ *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		const events = mostWaiting
		var all sync.WaitGroup
		for range events {
			all.Go(func() { send(http.MethodPost, anEvent) })
		}
		for time.Since(w.began) < 2*maxEventDelay {
			send(http.MethodPatch, aService)
		}
		all.Wait()
		if got := w.within(maxEventDelay + events*w.takes); got != events {
			t.Errorf("%d of %d events were sent when they were due", got, events)
		}
	})
}

func TestOnlySomeEventsWait(t *testing.T) {
	paced(t, func(t *testing.T, _ *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		const events, work = 5 * mostWaiting, 2 * time.Second
		var all sync.WaitGroup
		for range events {
			all.Go(func() { send(http.MethodPost, anEvent) })
		}
		for time.Since(w.began) < work {
			send(http.MethodPatch, aService)
		}
		if got, least := w.within(work), events-mostWaiting; got < least || got == events {
			t.Errorf("%d of %d events were sent beside other writes, want at least %d", got, events, least)
		}
		all.Wait()
	})
}

func TestReadsAndLeasesAreNoWork(t *testing.T) {
	paced(t, func(t *testing.T, _ *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		for range 2 * eventsBurst {
			send(http.MethodGet, aService)
			send(http.MethodPut, aLease)
			send(http.MethodPost, anEvent)
		}
		if got := w.within(6 * eventsBurst * w.takes); got != 2*eventsBurst {
			t.Errorf("%d of %d events were sent without a pause", got, 2*eventsBurst)
		}
	})
}

func TestEventsAreSentWhenTheManagerStops(t *testing.T) {
	paced(t, func(t *testing.T, p *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		const events = 100
		p.count(1) // a write in progress
		for range events {
			go send(http.MethodPost, anEvent)
		}
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := p.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if got := w.within(time.Hour); got != events {
			t.Errorf("%d of %d events were sent before the manager ended", got, events)
		}
		if took := time.Since(w.began); took > events*w.takes {
			t.Errorf("the manager waited %s for them", took)
		}
	})
}

func TestAnEventThatIsCanceledLetsTheNextPass(t *testing.T) {
	paced(t, func(t *testing.T, p *pacedEvents, w *wire, send func(method, path string, body ...string)) {
		for range eventsBurst {
			send(http.MethodPost, anEvent)
		}
		send(http.MethodPatch, aService)
		ctx, cancel := context.WithTimeout(t.Context(), atRest/2)
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, anEvent, nil)
		if response, err := p.wrap(w).RoundTrip(request); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the canceled event was sent: %v, %v", response, err)
		}
		send(http.MethodPost, anEvent)
		if got := w.within(time.Hour); got != eventsBurst+1 {
			t.Errorf("%d events were sent, want %d", got, eventsBurst+1)
		}
	})
}
