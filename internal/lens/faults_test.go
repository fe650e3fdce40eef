// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opdock/opdock/internal/testenv"
)

// script is Faults that a test writes.
type script struct {
	request func(*Call) Verdict
	answer  func(*Call, int) Verdict
	deliver func(context.Context, *Frame) Verdict
}

func (s *script) Request(_ context.Context, c *Call) Verdict {
	if s.request == nil {
		return Verdict{}
	}
	return s.request(c)
}

func (s *script) Answer(_ context.Context, c *Call, status int) Verdict {
	if s.answer == nil {
		return Verdict{}
	}
	return s.answer(c, status)
}

func (s *script) Deliver(ctx context.Context, _ *Call, f *Frame) Verdict {
	if s.deliver == nil {
		return Verdict{}
	}
	return s.deliver(ctx, f)
}

func TestFaultsInRequests(t *testing.T) {
	t.Parallel()
	forwarded := make(chan string, 10)
	serve := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		forwarded <- string(body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`)
	}
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`
	send := func(s *stage) (*http.Response, error) {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.lens.Config().Host+"/api/v1/namespaces/b/configmaps", strings.NewReader(body))
		if err != nil {
			s.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		return s.client.Do(request)
	}
	t.Run("refused before it is sent", func(t *testing.T) {
		s := newStage(t, Options{Faults: &script{request: func(c *Call) Verdict {
			if object := c.Body(); object == nil || object.GetName() != "a" || c.Request.Verb != "create" {
				t.Errorf("asked about %+v with %v", c.Request, object)
			}
			return Verdict{Action: Refuse, Answer: status(http.StatusConflict, metav1.StatusReasonConflict, "no"), Say: "conflict", Header: http.Header{"Retry-After": {"1"}}}
		}}}, serve)
		response, err := send(s)
		if err != nil || response.StatusCode != http.StatusConflict || response.Header.Get("Retry-After") != "1" {
			t.Fatalf("the answer is %v, %v", response, err)
		}
		response.Body.Close()
		if got := s.lastRequest(); got.Fault != "conflict" || got.Reason != "Conflict" || len(forwarded) != 0 {
			t.Errorf("recorded is %+v, and %d requests were forwarded", got, len(forwarded))
		}
	})
	t.Run("the answer is lost", func(t *testing.T) {
		s := newStage(t, Options{Faults: &script{answer: func(*Call, int) Verdict { return Verdict{Action: Abort, Say: "lost"} }}}, serve)
		if response, err := send(s); err == nil {
			response.Body.Close()
			t.Errorf("the answer is %s", response.Status)
		}
		if got := <-forwarded; got != body {
			t.Errorf("forwarded was %q", got)
		}
		if got := s.lastRequest(); got.Fault != "lost" {
			t.Errorf("recorded is %+v", got)
		}
	})
	t.Run("passed on", func(t *testing.T) {
		s := newStage(t, Options{Faults: &script{answer: func(*Call, int) Verdict { return Verdict{Say: "killed after the answer"} }}}, serve)
		response, err := send(s)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("the answer is %v, %v", response, err)
		}
		response.Body.Close()
		if got := <-forwarded; got != body {
			t.Errorf("forwarded was %q", got)
		}
		if got := s.lastRequest(); got.Fault != "killed after the answer" || got.Status != http.StatusOK {
			t.Errorf("recorded is %+v", got)
		}
	})
}

// A list can be answered with what there was. What else the client asks for stays, and other requests are as they were.
func TestListsOfThePast(t *testing.T) {
	t.Parallel()
	forwarded := make(chan string, 10)
	s := newStage(t, Options{Faults: &script{request: func(*Call) Verdict { return Verdict{AsOf: "17", Say: "old"} }}}, func(w http.ResponseWriter, r *http.Request) {
		forwarded <- r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"17"},"items":[]}`)
	})
	for path, want := range map[string]string{
		"/api/v1/pods?limit=500&resourceVersion=0":                                 "limit=500&resourceVersion=17&resourceVersionMatch=Exact",
		"/api/v1/pods?resourceVersion=0&resourceVersionMatch=NotOlderThan":         "resourceVersion=17&resourceVersionMatch=Exact",
		"/api/v1/namespaces/b/pods/a?resourceVersion=0":                            "resourceVersion=0",
		"/api/v1/pods?watch=1&resourceVersion=3&resourceVersionMatch=NotOlderThan": "watch=1&resourceVersion=3&resourceVersionMatch=NotOlderThan",
	} {
		s.request(http.MethodGet, path, "").Body.Close()
		if got := <-forwarded; got != want {
			t.Errorf("%s is forwarded with %s, want %s", path, got, want)
		}
	}
}

func TestFaultsInWatches(t *testing.T) {
	t.Parallel()
	event := func(name string) string {
		return fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"b","uid":%q,"resourceVersion":"1"}}}`, name, name)
	}
	release := make(chan struct{})
	s := newStage(t, Options{Faults: &script{deliver: func(ctx context.Context, f *Frame) Verdict {
		switch f.Object.GetName() {
		case "dropped":
			return Verdict{Action: Drop}
		case "held":
			select {
			case <-release:
			case <-ctx.Done():
			}
		case "end":
			return Verdict{Action: End}
		}
		return Verdict{}
	}}}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for _, name := range []string{"first", "dropped", "held", "last", "end", "never"} {
			fmt.Fprintln(w, event(name))
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	response := s.request(http.MethodGet, "/api/v1/pods?watch=1", "")
	lines := bufio.NewScanner(response.Body)
	for _, want := range []string{"first", "held", "last"} {
		if want == "held" {
			close(release)
		}
		if !lines.Scan() || lines.Text() != event(want) {
			t.Fatalf("received %q instead of %s: %v", lines.Text(), want, lines.Err())
		}
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("the watch goes on with %q, %v", lines.Text(), lines.Err())
	}
	var said []string
	testenv.Eventually(t, "the end of the watch is recorded", func() error {
		said = nil
		for _, e := range s.events() {
			switch {
			case e.Delivery != nil:
				said = append(said, e.Delivery.Object.Name+" "+e.Delivery.Fault)
			case e.Request != nil && !e.Request.Open:
				return nil
			}
		}
		return errors.New("it is not")
	})
	if got := strings.Join(said, ","); got != "first ,dropped dropped,held ,last " {
		t.Errorf("recorded are %q", got)
	}
}
