// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why/internal/whytest"
)

func get(t *testing.T, r *Recorder, path string) (int, []byte) {
	t.Helper()
	answer := httptest.NewRecorder()
	r.HTTPHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	if kind := answer.Header().Get("Content-Type"); kind != "application/json" {
		t.Errorf("%s is %s", path, kind)
	}
	return answer.Code, answer.Body.Bytes()
}

// run records reconciles of pods that are called 0, 1 and so on.
func (s *stage) run(count int) {
	s.Helper()
	for i := range count {
		name := reconcile.Request{}
		name.Namespace, name.Name = "default", strconv.Itoa(i)
		if _, err := s.controller.Reconciler(&fakeReconciler{}).Reconcile(s.Context(), name); err != nil {
			s.Fatal(err)
		}
	}
}

func TestRecordsByHTTP(t *testing.T) {
	s := newStage(t, Options{})
	s.run(5)
	tests := map[string]struct {
		query string
		want  string
		last  uint64
	}{
		"all":                {"", "1 2 3 4 5", 5},
		"the newest":         {"?limit=2", "4 5", 5},
		"what follows":       {"?after=2&limit=2", "3 4", 4},
		"one object":         {"?kind=deployment&namespace=default&name=1", "2", 2},
		"nothing new":        {"?after=5", "", 5},
		"no such":            {"?controller=other", "", 0},
		"of another process": {"?after=99", "1 2 3 4 5", 5},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// Wherever it is mounted.
			status, body := get(t, s.recorder, "/why/records"+test.query)
			var a Answer
			if err := json.Unmarshal(body, &a); err != nil || status != http.StatusOK || a.Records == nil {
				t.Fatalf("%d: %v: %s", status, err, body)
			}
			var ids []string
			for _, record := range a.Records {
				ids = append(ids, strconv.FormatUint(record.ID, 10))
			}
			if got := strings.Join(ids, " "); got != test.want || a.Last != test.last {
				t.Errorf("got %q and last %d, want %q and %d", got, a.Last, test.want, test.last)
			}
		})
	}
}

func TestBadQueries(t *testing.T) {
	s := newStage(t, Options{})
	for path, want := range map[string]int{
		"/records?limit=0": 400, "/records?limit=9999": 400, "/records?limit=x": 400, "/records?after=-1": 400, "/records?x=1": 400,
		"/records?name=a&name=b": 400, "/records?%zz": 400, "/stream?limit=1": 400, "/summary?x=1": 400, "/": 404, "/nothing": 404,
	} {
		status, body := get(t, s.recorder, path)
		var answer struct{ Error string }
		if err := json.Unmarshal(body, &answer); err != nil || status != want || answer.Error == "" {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	answer := httptest.NewRecorder()
	s.recorder.HTTPHandler().ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/records", nil))
	if answer.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", answer.Code)
	}
}

func TestSummaryByHTTP(t *testing.T) {
	s := newStage(t, Options{MaxRecords: 3})
	s.run(5)
	_, body := get(t, s.recorder, "/summary")
	var summary Summary
	if err := json.Unmarshal(body, &summary); err != nil {
		t.Fatal(err)
	}
	if summary.Last != 5 || summary.Dropped.Records != 2 || summary.Kept.Records != 3 || summary.Controllers[0].Reconciles != 5 || summary.Version < 1 {
		t.Errorf("the summary is %s", body)
	}
	if status, body := get(t, nil, "/summary"); status != http.StatusOK || !strings.Contains(string(body), `"controllers":[]`) {
		t.Errorf("a recorder that is off answers %d %s", status, body)
	}
}

// readEvents reads server-sent events until there are enough.
func readEvents(t *testing.T, from io.Reader, count int) (events []string) {
	t.Helper()
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	var current []string
	for len(events) < count && lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, ":"):
		case line != "":
			name, data, _ := strings.Cut(line, ": ")
			if _, id, ok := strings.Cut(data, "-"); ok && name == "id" {
				data = id // without the instance
			}
			if name != "data" || current[0] == "lost" {
				current = append(current, data)
			}
		case len(current) > 0:
			events, current = append(events, strings.Join(current, " ")), nil
		}
	}
	return events
}

func TestStream(t *testing.T) {
	s := newStage(t, Options{MaxRecords: 10})
	server := httptest.NewServer(s.recorder.HTTPHandler())
	t.Cleanup(server.Close) // after those of the streams
	s.run(2)
	open := func(query, last string) io.ReadCloser {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/stream"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			request.Header.Set("Last-Event-ID", last)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Fatalf("it is %s", kind)
		}
		return response.Body
	}
	check := func(body io.Reader, want ...string) {
		t.Helper()
		if got := readEvents(t, body, len(want)); strings.Join(got, ", ") != strings.Join(want, ", ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	live := open("", "")
	check(live, "record 1", "record 2")
	s.run(1)
	check(live, "record 3")
	check(open("?after=1", ""), "record 2", "record 3")
	check(open("?after=1", "2"), "record 3")
	s.run(20)
	check(open("", "2"), "lost {\"records\":11}", "record 14")
}

// The records of the process before had the same IDs.
func TestIDsOfTheProcessBefore(t *testing.T) {
	s := newStage(t, Options{})
	s.run(3)
	_, body := get(t, s.recorder, "/summary")
	var summary Summary
	if err := json.Unmarshal(body, &summary); err != nil || summary.Instance == "" {
		t.Fatalf("%v: %s", err, body)
	}
	for after, want := range map[string]int{"2": 1, summary.Instance + "-2": 1, "another-2": 3, "another-99": 3} {
		_, body := get(t, s.recorder, "/records?after="+after)
		var answer Answer
		if err := json.Unmarshal(body, &answer); err != nil || len(answer.Records) != want || answer.Instance != summary.Instance {
			t.Errorf("after %s: %v: %s", after, err, body)
		}
	}
}

// TestNothingIsMissedThatWasNotAskedFor has an object that is so busy that its older records make room for its own.
func TestNothingIsMissedThatWasNotAskedFor(t *testing.T) {
	s := newStage(t, Options{MaxPerObject: 2})
	s.run(1)
	busy := func() {
		for range 10 {
			s.reconcile(nil)
		}
	}
	busy()
	missed := func(q Query, read int, between func()) (lost uint64) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, missing := range s.recorder.Follow(ctx, q) {
			lost += missing
			if read--; read == 0 {
				return lost
			}
			if between != nil {
				between()
				between = nil
			}
		}
		return lost
	}
	if lost := missed(Query{}, 3, nil); lost != 0 {
		t.Errorf("a new reader is told that it has missed %d", lost)
	}
	other := func() { busy(); s.run(1) }
	if lost := missed(Query{Name: "0"}, 2, other); lost != 0 {
		t.Errorf("who asks for another object is told that %d are missing", lost)
	}
	// Who was there, and asked for it, has missed what was dropped since.
	if lost := missed(Query{Name: request.Name}, 4, busy); lost != 8 {
		t.Errorf("who asks for the object is told that %d are missing", lost)
	}
}

// TestReaderThatDoesNotRead shows that nothing waits for it: recording continues within its bounds.
func TestReaderThatDoesNotRead(t *testing.T) {
	s := newStage(t, Options{MaxRecords: 10})
	server := httptest.NewServer(s.recorder.HTTPHandler())
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(connection, "GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	s.run(20_000)
	if kept := s.recorder.Summary().Kept; kept.Records != 10 {
		t.Errorf("%d records are kept", kept.Records)
	}
	connection.Close()
	server.CloseClientConnections()
	server.Close()
}

func TestFollow(t *testing.T) {
	s := newStage(t, Options{MaxRecords: 5, MaxPerObject: 2})
	s.run(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	for record, lost := range s.recorder.Follow(ctx, Query{}) {
		got = append(got, fmt.Sprintf("%d-%d", lost, record.ID))
		if len(got) == 1 {
			s.run(9)
		}
		if len(got) == 6 {
			cancel()
			s.run(1)
		}
	}
	if text := strings.Join(got, " "); text != "0-1 4-6 0-7 0-8 0-9 0-10" {
		t.Errorf("got %s", text)
	}
}

func TestStoreBounds(t *testing.T) {
	s := newStage(t, Options{MaxRecords: 100, MaxPerObject: 3, MaxBytes: 20_000})
	s.run(1)
	for range 10 {
		s.reconcile(nil)
	}
	if kept := s.recorder.Summary().Kept; kept.Records != 4 || kept.Objects != 2 {
		t.Errorf("%+v is kept", kept)
	}
	s.run(90)
	if kept := s.recorder.Summary().Kept; kept.Bytes > 20_000 || kept.Records < 10 || kept.Objects > kept.Records {
		t.Errorf("%+v is kept", kept)
	}
	s.run(90)
	s.created(whytest.Web(), false)
	for range s.recorder.options.MaxWaiting {
		s.created(whytest.Web(), false)
	}
	if waiting := s.recorder.Summary().Controllers[0].Waiting; waiting != 1 {
		t.Errorf("%d wait", waiting)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	s := newStage(t, Options{MaxWaiting: 2})
	for i := range 5 {
		e := s.controller.happened(Generic, nil, nil)
		e.leadsTo(keyOf(i), 0)
	}
	if summary := s.recorder.Summary(); summary.Controllers[0].Waiting != 2 || summary.Dropped.Causes != 3 {
		t.Errorf("the summary is %+v", summary)
	}
}

func TestWaitingCausesAreBounded(t *testing.T) {
	s := newStage(t, Options{MaxWaitingBytes: 20_000})
	for range 50 {
		object := s.changed(whytest.Web(), "kubectl", replicas(1))
		for i := range 10 {
			e := s.controller.happened(Updated, whytest.Web(), object)
			e.leadsTo(keyOf(i), 0)
		}
	}
	s.recorder.readSettled(func() {
		if bytes := s.recorder.waitingBytes; bytes > 30_000 {
			t.Errorf("%d bytes wait", bytes)
		}
	})
	r := s.reconcile(nil)
	if r.Folded != 50 || len(r.Causes) < 2 || r.Causes[0].Changes == nil || r.Causes[len(r.Causes)-1].Changes != nil || r.Causes[len(r.Causes)-1].Object == nil {
		t.Errorf("%d events, the causes are %s", r.Folded, causes(r))
	}
	s.recorder.readSettled(func() {
		for i := range 10 {
			s.controller.take(keyOf(i), s.clock.Now())
		}
		if bytes := s.recorder.waitingBytes; bytes != 0 {
			t.Errorf("%d bytes wait for nothing", bytes)
		}
	})
	if s.recorder.Summary().Dropped.Changes == 0 {
		t.Error("missing records are not reported")
	}
}
