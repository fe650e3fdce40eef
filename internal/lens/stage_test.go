// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/testenv"
)

// stage is a lens in front of a server that a test plays.
type stage struct {
	*testing.T
	lens   *Lens
	client *http.Client
}

func newStage(t *testing.T, o Options, serve http.HandlerFunc) *stage {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	if o.Upstream == nil {
		o.Upstream = &rest.Config{Host: server.URL + "/prefix", BearerToken: "upstream"}
	}
	proxy, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.CloseClientConnections()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := rest.HTTPClientFor(proxy.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &stage{t, proxy, client}
}

// reply is an answer, whose body is closed when the test ends.
type reply struct{ *http.Response }

func (s *stage) request(method, path, body string, header ...string) reply {
	s.Helper()
	return s.send(method, path, strings.NewReader(body), header...)
}

func (s *stage) send(method, path string, body io.Reader, header ...string) reply {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.lens.Config().Host+path, body)
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { response.Body.Close() })
	return reply{response}
}

func (s *stage) read(response reply) string {
	s.Helper()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return string(data)
}

// events are all that the lens has seen so far.
func (s *stage) events() (all []Event) {
	s.Helper()
	if err := s.lens.Flush(s.Context()); err != nil {
		s.Fatal(err)
	}
	all, _, _, _ = s.lens.stream.since(0)
	return all
}

// lastRequest waits for a request to be complete: its answer is read a moment before.
func (s *stage) lastRequest() *Request {
	s.Helper()
	return s.lastOf("")
}

// lastOf waits for a request with a verb; any if it is empty.
func (s *stage) lastOf(verb string) *Request {
	s.Helper()
	var found *Request
	testenv.Eventually(s.T, "the request is in the stream", func() error {
		for _, e := range s.events() {
			if e.Request != nil && !e.Request.Open && (verb == "" || e.Request.Verb == verb) {
				found = e.Request
			}
		}
		if found == nil {
			return errors.New("it is not")
		}
		return nil
	})
	return found
}
