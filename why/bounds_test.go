// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/opdock/opdock/why/internal/serving"
)

// serveBounded serves a recorder and returns where.
func (s *stage) serveBounded(b serving.Bounds) string {
	s.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(ctx, listener, s.recorder.HTTPHandler(), b) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Error(err)
		}
	})
	return listener.Addr().String()
}

// Those who ask and do not read what they get take all places there are, and lose them again: after a while, and sooner if
// others wait for them.
func TestUnreadResponsesDelayNoOther(t *testing.T) {
	const connections = 8
	for name, b := range map[string]serving.Bounds{
		"given up": {Connections: connections, Streams: 1, Within: 100 * time.Millisecond, Stuck: time.Hour},
		"replaced": {Connections: connections, Streams: 1, Within: time.Hour, Stuck: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, Options{})
			s.run(1000)
			address := s.serveBounded(b)
			// One answer might fit into what the operating system keeps; so many do not.
			one := fmt.Sprintf("GET /why/records?limit=1000 HTTP/1.1\r\nHost: %s\r\n\r\n", address)
			for range connections {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go func() { _, _ = io.WriteString(conn, strings.Repeat(one, 200)) }() // it is cut off
			}
			if got := awaitSummary(t, address); got.Last != 1000 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestStreamsOfAnOperatorAreBounded(t *testing.T) {
	s := newStage(t, Options{})
	address := s.serveBounded(serving.Bounds{Connections: 8, Streams: 1, Within: time.Minute, Stuck: time.Second})
	ask := func(path string) (status int, header http.Header) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { response.Body.Close() })
		return response.StatusCode, response.Header
	}
	if status, _ := ask("/why/stream"); status != http.StatusOK {
		t.Fatalf("the first gets %d", status)
	}
	if status, header := ask("/why/stream"); status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("the second gets %d", status)
	}
	if status, _ := ask("/why/records"); status != http.StatusOK {
		t.Errorf("records are not served either: %d", status)
	}
}
