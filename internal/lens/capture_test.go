// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/opdock/opdock/internal/testenv"
)

// An operator may follow logs and talk to services as long as it runs. That leaves the room for copies to what is decoded.
func TestStreamsThatAreNotDecodedTakeNoRoom(t *testing.T) {
	t.Parallel()
	const room = 64 << 10
	text := strings.Repeat("x", room-1000)
	for path, contentType := range map[string]string{
		"/api/v1/namespaces/a/pods/b/log?follow=true":     "text/plain",
		"/api/v1/namespaces/a/services/b/proxy/events":    "application/json",
		"/api/v1/namespaces/a/configmaps/of-another-kind": "application/x-tar",
		"/debug/pprof/trace":                              "application/json",
	} {
		t.Run(contentType+" of "+path, func(t *testing.T) {
			t.Parallel()
			enough := make(chan struct{})
			s := newStage(t, Options{MaxPending: room}, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"},"data":{"k":%q}}`, text[:4000])
					return
				}
				w.Header().Set("Content-Type", contentType)
				fmt.Fprint(w, text)
				w.(http.Flusher).Flush()
				<-enough
			})
			stream := s.request(http.MethodGet, path, "")
			if _, err := io.ReadFull(stream.Body, make([]byte, len(text))); err != nil {
				t.Fatal(err)
			}
			s.read(s.request(http.MethodPost, "/api/v1/namespaces/b/configmaps", "{}", "Content-Type", "application/json"))
			if got := s.lastOf("create"); got.Undecoded != "" || got.Object == nil {
				t.Errorf("meanwhile, a write is recorded as %+v", got)
			}
			close(enough)
			s.read(stream)
			if got := s.lastOf("get"); got.BytesOut != int64(len(text)) {
				t.Errorf("the stream is recorded as %+v", got)
			}
		})
	}
}

// What an operator sends to a service may also last long.
func TestBodiesForServicesTakeNoRoom(t *testing.T) {
	t.Parallel()
	const size = 100_000
	s := newStage(t, Options{MaxPending: size + size/6}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/configmaps") {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7"},"data":{"k":%q}}`, strings.Repeat("x", size/3))
			return
		}
		count, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, count)
	})
	body, send := io.Pipe()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.lens.Config().Host+"/api/v1/namespaces/a/services/b/proxy/upload", body)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		response, err := s.client.Do(request)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		answered <- err
	}()
	if _, err := send.Write(make([]byte, size)); err != nil { // returns when the lens has read most of it
		t.Fatal(err)
	}
	s.read(s.request(http.MethodPost, "/api/v1/namespaces/b/configmaps", "{}", "Content-Type", "application/json"))
	if got := s.lastOf("create"); got.Undecoded != "" || got.Object == nil {
		t.Errorf("meanwhile, a write is recorded as %+v", got)
	}
	if err := errors.Join(send.Close(), <-answered); err != nil {
		t.Fatal(err)
	}
	var got *Request
	testenv.Eventually(t, "the request to the service is complete", func() error {
		for _, e := range s.events() {
			if e.Request != nil && e.Request.Resource.Subresource == "proxy" {
				got = e.Request
				return nil
			}
		}
		return errors.New("it is not")
	})
	if got.BytesIn != size || got.BytesOut != int64(len("100000")) {
		t.Errorf("recorded is %+v", got)
	}
}

func TestWhatIsNotDecoded(t *testing.T) {
	t.Parallel()
	const object = "/api/v1/namespaces/a/configmaps/b"
	for name, one := range map[string]struct {
		path, contentType, body string
		status                  int
		undecoded, message      string
	}{
		"an encoding that is not known":  {object, "application/cbor", "\xd9\xd9\xf7", http.StatusOK, unknownEncoding, ""},
		"a log":                          {"/api/v1/namespaces/a/pods/b/log", "text/plain", "line\n", http.StatusOK, "", ""},
		"a log that is refused":          {"/api/v1/namespaces/a/pods/b/log", "application/json", `{"kind":"Status","apiVersion":"v1","message":"no"}`, http.StatusForbidden, "", "no"},
		"an answer without a body":       {object, "", "", http.StatusOK, "", ""},
		"an error of another server":     {object, "text/html", "bad gateway\nmore", http.StatusBadGateway, "", "bad gateway"},
		"an error that is far too large": {object, "text/html", strings.Repeat("x", maxErrorText+1), http.StatusBadGateway, tooLarge, ""},
		"an error of a path":             {"/healthz", "text/plain", "not ready", http.StatusInternalServerError, "", "not ready"},
		"a path":                         {"/healthz", "text/plain", "ok", http.StatusOK, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{one.contentType}
				w.WriteHeader(one.status)
				fmt.Fprint(w, one.body)
			})
			if got := s.read(s.request(http.MethodGet, one.path, "")); got != one.body {
				t.Errorf("the client got %.100q", got)
			}
			if got := s.lastOf("get"); got.Undecoded != one.undecoded || got.Message != one.message || got.BytesOut != int64(len(one.body)) {
				t.Errorf("recorded is %+v", got)
			}
		})
	}
}
