// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	aService = "/api/v1/namespaces/default/services"
	aLease   = "/apis/coordination.k8s.io/v1/namespaces/default/leases/manager"
)

// wire is an API server that takes a while for each request, and notes when events arrive.
type wire struct {
	takes time.Duration
	began time.Time
	fails []error // of the next attempts to create an event

	mutex    sync.Mutex
	created  map[string][]time.Duration // by name
	patched  map[string]time.Duration
	underWay int
	most     int // events at a time
}

func (w *wire) RoundTrip(*http.Request) (*http.Response, error) {
	time.Sleep(w.takes) // in the time of synctest, which takes none
	return httptest.NewRecorder().Result(), nil
}

func (w *wire) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	w.mutex.Lock()
	w.created[event.Name] = append(w.created[event.Name], time.Since(w.began))
	w.underWay++
	w.most = max(w.most, w.underWay)
	var err error
	if len(w.fails) > 0 {
		err, w.fails = w.fails[0], w.fails[1:]
	}
	w.mutex.Unlock()
	time.Sleep(w.takes)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.underWay--
	return event, err
}

func (w *wire) Update(context.Context, *eventsv1.Event) (*eventsv1.Event, error) {
	return nil, errors.New("client-go does not update events")
}

func (w *wire) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.patched[event.Name] = time.Since(w.began)
	return event, nil
}

// within returns how many events arrived before a time.
func (w *wire) within(limit time.Duration) (count int) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, all := range w.created {
		for _, at := range all {
			if at < limit {
				count++
			}
		}
	}
	return count
}

// first returns when an event arrived for the first time.
func (w *wire) first(name string) time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.created[name][0]
}

// scene is a test in a time that stands still, with a manager whose events are paced.
type scene struct {
	*testing.T
	paced *pacedEvents
	wire  *wire
	count int
	stop  func() // returns when the pace has ended
}

func paced(t *testing.T, test func(*scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := &wire{takes: 5 * time.Millisecond, began: time.Now(), created: map[string][]time.Duration{}, patched: map[string]time.Duration{}}
		s := &scene{T: t, paced: newPacedEvents(logr.Discard(), time.Minute), wire: w}
		s.paced.next = w
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.paced.Start(ctx) }()
		s.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		defer s.stop()
		test(s)
	})
}

// record records events without a name of their own.
func (s *scene) record(count int) {
	s.Helper()
	for range count {
		s.count++
		s.recordAs(fmt.Sprintf("web.%d", s.count), corev1.EventTypeNormal, nil)
	}
}

func (s *scene) recordAs(name, kind string, series *eventsv1.EventSeries) {
	s.Helper()
	event := &eventsv1.Event{Type: kind, Series: series}
	event.Namespace, event.Name = "default", name
	if _, err := s.paced.Create(s.Context(), event); err != nil {
		s.Error(err)
	}
}

func (s *scene) send(method, path string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, "https://server/prefix"+path, nil)
	if err != nil {
		s.Fatal(err)
	}
	response, err := s.paced.wrap(s.wire).RoundTrip(request)
	if err != nil {
		s.Fatal(err)
	}
	response.Body.Close()
}

// work writes objects for a time.
func (s *scene) work(until time.Duration) {
	s.Helper()
	for time.Since(s.wire.began) < until {
		s.send(http.MethodPatch, aService)
	}
}

// becomeBusy uses up the events that are not delayed, and writes an object. All events after that are delayed.
func (s *scene) becomeBusy() {
	s.Helper()
	s.send(http.MethodPatch, aService)
	s.record(eventsBurst)
	s.work(atRest / 2)
}

func TestEventsAtRestAreSentAtOnce(t *testing.T) {
	paced(t, func(s *scene) {
		const events = 3 * eventsBurst
		s.record(events)
		time.Sleep(time.Second)
		if got := s.wire.within(events * s.wire.takes); got != events {
			s.Errorf("%d of %d events were sent without a pause", got, events)
		}
	})
}

func TestEventsLetWritesPass(t *testing.T) {
	paced(t, func(s *scene) {
		const work, events = 4 * time.Second, 150
		s.send(http.MethodPatch, aService)
		s.record(events)
		s.work(work)
		if got, most := s.wire.within(work), eventsBurst+eventsPerSecond*int(work/time.Second); got < eventsBurst || got > most {
			s.Errorf("%d events were sent beside other writes, want %d to %d", got, eventsBurst, most)
		}
		time.Sleep(time.Minute)
		if got := s.wire.within(work + atRest + events*s.wire.takes); got != events {
			s.Errorf("%d of %d events were sent as soon as there was nothing else to write", got, events)
		}
		if s.wire.most != eventsAtOnce {
			s.Errorf("%d events were sent at a time, want %d", s.wire.most, eventsAtOnce)
		}
	})
}

func TestEventsAreSentInOrder(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		s.recordAs("first", corev1.EventTypeNormal, nil)
		s.recordAs("second", corev1.EventTypeNormal, nil)
		time.Sleep(time.Minute)
		if first, second := s.wire.first("first"), s.wire.first("second"); first > second {
			s.Errorf("the first was sent at %s, and the second at %s", first, second)
		}
	})
}

// client-go sends the repetition of an event that is gone as a new event, while no other event can be sent.
func TestWarningsAndNewSeriesAreNotDelayed(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		began := time.Since(s.wire.began)
		s.recordAs("warning", corev1.EventTypeWarning, nil)
		if at := s.wire.first("warning"); at != began {
			s.Errorf("the warning was sent %s late", at-began)
		}
		began = time.Since(s.wire.began)
		s.recordAs("again", corev1.EventTypeNormal, &eventsv1.EventSeries{Count: 2})
		if at := s.wire.first("again"); at != began {
			s.Errorf("the repetition was sent %s late", at-began)
		}
	})
}

func TestASlowServerDoesNotLetTheQueueGrow(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		time.Sleep(time.Second)
		s.wire.takes = time.Hour
		s.record(2 * eventsAtOnce)
		time.Sleep(maxEventDelay + time.Second)
		if got := s.wire.within(time.Hour); got != eventsBurst+2*eventsAtOnce {
			s.Errorf("%d events were sent, want %d", got, eventsBurst+2*eventsAtOnce)
		}
		time.Sleep(2 * time.Hour)
	})
}

// A repetition of an event is a patch of it, so it must not come before it.
func TestARepetitionComesAfterItsEvent(t *testing.T) {
	paced(t, func(s *scene) {
		repeat := func(name string) {
			event := &eventsv1.Event{}
			event.Namespace, event.Name = "default", name
			if _, err := s.paced.Patch(s.Context(), event, nil); err != nil {
				s.Error(err)
			}
		}
		s.becomeBusy()
		s.recordAs("web", corev1.EventTypeNormal, nil)
		repeat("web")
		if first, again := s.wire.first("web"), s.wire.patched["web"]; again < first+s.wire.takes {
			s.Errorf("the repetition was sent at %s, and its event at %s", again, first)
		}
		began := time.Since(s.wire.began)
		repeat("other")
		if at := s.wire.patched["other"]; at != began {
			s.Errorf("the repetition of an event that is there was sent %s late", at-began)
		}
	})
}

func TestARepetitionThatIsCanceled(t *testing.T) {
	paced(t, func(s *scene) {
		s.becomeBusy()
		event := &eventsv1.Event{Type: corev1.EventTypeNormal}
		event.Namespace, event.Name = "default", "web"
		if _, err := s.paced.Create(s.Context(), event); err != nil {
			s.Fatal(err)
		}
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		if _, err := s.paced.Patch(ctx, event, nil); !errors.Is(err, context.Canceled) {
			s.Errorf("it was sent: %v", err)
		}
	})
}

func TestAnEventIsNotDelayedForEver(t *testing.T) {
	paced(t, func(s *scene) {
		const events = mostWaiting
		s.send(http.MethodPatch, aService)
		s.record(events)
		s.work(2 * maxEventDelay)
		if got := s.wire.within(maxEventDelay + events*s.wire.takes); got != events {
			s.Errorf("%d of %d events were sent when they were due", got, events)
		}
	})
}

func TestOnlySomeEventsWait(t *testing.T) {
	paced(t, func(s *scene) {
		const events, work = 5 * mostWaiting, 2 * time.Second
		s.send(http.MethodPatch, aService)
		s.record(events)
		s.work(work)
		if got, least := s.wire.within(work), events-mostWaiting; got < least || got == events {
			s.Errorf("%d of %d events were sent beside other writes, want at least %d", got, events, least)
		}
	})
}

func TestReadsAndLeasesAreNoWork(t *testing.T) {
	paced(t, func(s *scene) {
		const events = 2 * eventsBurst
		for range events {
			s.send(http.MethodGet, aService)
			s.send(http.MethodPut, aLease)
			s.record(1)
		}
		time.Sleep(time.Second)
		if got := s.wire.within(6 * eventsBurst * s.wire.takes); got != events {
			s.Errorf("%d of %d events were sent without a pause", got, events)
		}
	})
}

// An event whose request fails on the way is sent again, and one that the API server refuses is not.
func TestEventsThatFail(t *testing.T) {
	refused := apierrors.NewForbidden(eventsv1.Resource("events"), "web", errors.New("the namespace is being deleted"))
	broken := errors.New("connection refused")
	for about, test := range map[string]struct {
		fails []error
		want  int
	}{
		"none":                      {nil, 1},
		"the connection fails":      {[]error{broken}, 2},
		"it fails again and again":  {slices.Repeat([]error{broken}, 2*mostAttempts), mostAttempts},
		"the API server refuses it": {[]error{refused}, 1},
		"it refuses it later":       {[]error{broken, refused}, 2},
	} {
		paced(t, func(s *scene) {
			s.wire.fails = test.fails
			s.record(1)
			time.Sleep(mostAttempts * (eventRetry + time.Second))
			if got := s.wire.within(time.Hour); got != test.want {
				s.Errorf("%s: it was sent %d times, want %d", about, got, test.want)
			}
		})
	}
}

func TestEventsAreSentWhenTheManagerStops(t *testing.T) {
	paced(t, func(s *scene) {
		const events = 100
		s.paced.count(1) // a write in progress
		s.record(events)
		synctest.Wait()
		s.stop()
		if got := s.wire.within(time.Hour); got != events {
			s.Errorf("%d of %d events were sent before the manager ended", got, events)
		}
		if took := time.Since(s.wire.began); took > events*s.wire.takes {
			s.Errorf("the manager waited %s for them", took)
		}
		began := time.Since(s.wire.began)
		s.recordAs("late", corev1.EventTypeNormal, nil)
		if at := s.wire.first("late"); at != began {
			s.Errorf("an event of a controller that stops was sent %s late", at-began)
		}
	})
}

func TestAManagerDoesNotWaitForAServerThatIsGone(t *testing.T) {
	paced(t, func(s *scene) {
		s.wire.fails = slices.Repeat([]error{errors.New("connection refused")}, 3*mostAttempts)
		s.record(3)
		synctest.Wait()
		before := time.Now()
		s.stop()
		if took := time.Since(before); took > lastEvents {
			s.Errorf("the manager waited %s", took)
		}
	})
}

// What is recorded after the manager has stopped is dropped: a broadcaster that was shut down would panic.
func TestRecorders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{began: time.Now(), created: map[string][]time.Duration{}}
		r := &recorders{sink: w, scheme: scheme.Scheme, log: logr.Discard()}
		one, other := r.named("opdock-one"), r.named("opdock-other")
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "default", "web-0"
		one.Eventf(pod, nil, corev1.EventTypeNormal, "Created", "Create", "pod %s", "web-0")
		synctest.Wait()
		r.close()
		one.Eventf(pod, nil, corev1.EventTypeNormal, "Deleted", "Delete", "too late")
		other.Eventf(pod, nil, corev1.EventTypeNormal, "Deleted", "Delete", "too late")
		synctest.Wait()
		if got := w.within(time.Hour); got != 1 {
			t.Errorf("%d events were sent, want 1", got)
		}
		for name := range w.created {
			if !strings.HasPrefix(name, "web-0.") {
				t.Errorf("the event is called %s", name)
			}
		}
	})
}
