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
	path := strings.TrimPrefix(r.URL.Path, "/prefix")
	w.mutex.Lock()
	w.arrived[path] = append(w.arrived[path], time.Since(w.began))
	w.underWay[path]++
	w.most = max(w.most, w.underWay[anEvent])
	w.mutex.Unlock()
	time.Sleep(w.takes) // in the time of synctest, which takes none
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.underWay[path]--
	return httptest.NewRecorder().Result(), nil
}

// scene is a test in a time that stands still, with a client whose events are paced.
type scene struct {
	*testing.T
	paced *pacedEvents
	wire  *wire
}

func paced(t *testing.T, test func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &wire{takes: 5 * time.Millisecond, began: time.Now(), arrived: map[string][]time.Duration{}, underWay: map[string]int{}}
		test(&scene{t, newPacedEvents(time.Minute), w})
	})
}

func (s *scene) send(method, path string, body ...string) {
	s.Helper()
	if err := s.sendWithin(s.Context(), method, path, body...); err != nil {
		s.Error(err)
	}
}

// becomeBusy sends the events that are not delayed, and a write. All events after that are delayed.
func (s *scene) becomeBusy() {
	s.Helper()
	for range eventsBurst {
		s.send(http.MethodPost, anEvent)
	}
	s.send(http.MethodPatch, aService)
}

func (s *scene) sendWithin(ctx context.Context, method, path string, body ...string) error {
	// Like client-go, which sets GetBody.
	request, err := http.NewRequestWithContext(ctx, method, "https://server/prefix"+path, strings.NewReader(strings.Join(body, "")))
	if err != nil {
		return err
	}
	response, err := s.paced.wrap(s.wire).RoundTrip(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
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
	paced(t, func(s *scene) {
		for range 3 * eventsBurst {
			s.send(http.MethodPost, anEvent)
		}
		if got := s.wire.within(3 * eventsBurst * s.wire.takes); got != 3*eventsBurst {
			s.Errorf("%d of %d events were sent without a pause", got, 3*eventsBurst)
		}
	})
}

func TestEventsLetWritesPass(t *testing.T) {
	paced(t, func(s *scene) {
		const work, events = 4 * time.Second, 150
		var all sync.WaitGroup
		for range events {
			all.Go(func() { s.send(http.MethodPost, anEvent) })
		}
		for time.Since(s.wire.began) < work {
			s.send(http.MethodPatch, aService)
		}
		if got, most := s.wire.within(work), eventsBurst+eventsPerSecond*int(work/time.Second); got < eventsBurst || got > most {
			s.Errorf("%d events were sent beside other writes, want %d to %d", got, eventsBurst, most)
		}
		all.Wait()
		if got := s.wire.within(work + atRest + events*s.wire.takes); got != events {
			s.Errorf("%d of %d events were sent as soon as there was nothing else to write", got, events)
		}
		if s.wire.most != eventsAtOnce {
			s.Errorf("%d events were sent at a time, want %d", s.wire.most, eventsAtOnce)
		}
	})
}

func TestWarningsAreNotDelayed(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		before := len(s.wire.arrived[anEvent])
		began := time.Since(s.wire.began)
		s.send(http.MethodPost, anEvent, `{"type":"Warning"}`)
		if at := s.wire.arrived[anEvent][before]; at != began {
			s.Errorf("the warning was sent %s late", at-began)
		}
	})
}

// client-go sends the repetition of an event that is gone as a new event, while no other event can be sent.
func TestNewSeriesAreNotDelayed(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		before := len(s.wire.arrived[anEvent])
		began := time.Since(s.wire.began)
		s.send(http.MethodPost, anEvent, `{"type":"Normal","series":{"count":2}}`)
		if at := s.wire.arrived[anEvent][before]; at != began {
			s.Errorf("the repetition was sent %s late", at-began)
		}
	})
}

func TestASlowServerDoesNotLetTheQueueGrow(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		s.wire.takes = time.Hour
		var all sync.WaitGroup
		for range 2 * eventsAtOnce {
			all.Go(func() { s.send(http.MethodPost, anEvent) })
		}
		time.Sleep(maxEventDelay + time.Second)
		if got := s.wire.within(time.Hour); got != eventsBurst+2*eventsAtOnce {
			s.Errorf("%d events were sent, want %d", got, eventsBurst+2*eventsAtOnce)
		}
		all.Wait()
	})
}

func TestOneEventThatHangsDoesNotHoldUpTheOthers(t *testing.T) {
	paced(t, func(s *scene) {
		hanging, err := s.paced.await(s.Context())
		if err != nil {
			s.Fatal(err)
		}
		defer hanging()
		s.send(http.MethodPost, anEvent)
		if got := s.wire.within(time.Second); got != 1 {
			s.Errorf("%d events were sent beside one that hangs", got)
		}
	})
}

// A repetition of an event is a patch of it, so it must not come before it.
func TestARepetitionComesAfterItsEvent(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		var both sync.WaitGroup
		both.Go(func() { s.send(http.MethodPost, anEvent, `{"metadata":{"name":"web.1"}}`) })
		synctest.Wait()
		both.Go(func() { s.send(http.MethodPatch, anEvent+"/web.1") })
		both.Wait()
		if first, again := s.wire.arrived[anEvent][eventsBurst], s.wire.arrived[anEvent+"/web.1"][0]; again < first+s.wire.takes {
			s.Errorf("the repetition was sent at %s, and its event at %s", again, first)
		}
		began := time.Since(s.wire.began)
		s.send(http.MethodPatch, anEvent+"/other.1")
		if at := s.wire.arrived[anEvent+"/other.1"][0]; at != began {
			s.Errorf("the repetition of an event that is there was sent %s late", at-began)
		}
	})
}

func TestAnEventIsNotDelayedForEver(t *testing.T) {
	paced(t, func(s *scene) {
		const events = mostWaiting
		var all sync.WaitGroup
		for range events {
			all.Go(func() { s.send(http.MethodPost, anEvent) })
		}
		for time.Since(s.wire.began) < 2*maxEventDelay {
			s.send(http.MethodPatch, aService)
		}
		all.Wait()
		if got := s.wire.within(maxEventDelay + events*s.wire.takes); got != events {
			s.Errorf("%d of %d events were sent when they were due", got, events)
		}
	})
}

func TestOnlySomeEventsWait(t *testing.T) {
	paced(t, func(s *scene) {
		const events, work = 5 * mostWaiting, 2 * time.Second
		var all sync.WaitGroup
		for range events {
			all.Go(func() { s.send(http.MethodPost, anEvent) })
		}
		for time.Since(s.wire.began) < work {
			s.send(http.MethodPatch, aService)
		}
		if got, least := s.wire.within(work), events-mostWaiting; got < least || got == events {
			s.Errorf("%d of %d events were sent beside other writes, want at least %d", got, events, least)
		}
		all.Wait()
	})
}

func TestReadsAndLeasesAreNoWork(t *testing.T) {
	paced(t, func(s *scene) {
		for range 2 * eventsBurst {
			s.send(http.MethodGet, aService)
			s.send(http.MethodPut, aLease)
			s.send(http.MethodPost, anEvent)
		}
		if got := s.wire.within(6 * eventsBurst * s.wire.takes); got != 2*eventsBurst {
			s.Errorf("%d of %d events were sent without a pause", got, 2*eventsBurst)
		}
	})
}

func TestEventsAreSentWhenTheManagerStops(t *testing.T) {
	paced(t, func(s *scene) {
		const events = 100
		s.paced.count(1) // a write in progress
		for range events {
			go s.send(http.MethodPost, anEvent)
		}
		synctest.Wait()
		ctx, stop := context.WithCancel(s.Context())
		stop()
		if err := s.paced.Start(ctx); err != nil {
			s.Fatal(err)
		}
		if got := s.wire.within(time.Hour); got != events {
			s.Errorf("%d of %d events were sent before the manager ended", got, events)
		}
		if took := time.Since(s.wire.began); took > events*s.wire.takes {
			s.Errorf("the manager waited %s for them", took)
		}
	})
}

func TestAnEventThatIsCanceledLetsTheNextPass(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		ctx, cancel := context.WithTimeout(s.Context(), atRest/2)
		defer cancel()
		if err := s.sendWithin(ctx, http.MethodPost, anEvent); !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("the canceled event was sent: %v", err)
		}
		s.send(http.MethodPost, anEvent)
		if got := s.wire.within(time.Hour); got != eventsBurst+1 {
			s.Errorf("%d events were sent, want %d", got, eventsBurst+1)
		}
	})
}
