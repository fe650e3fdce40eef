// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/opdock/opdock/internal/sse"
)

const (
	// heartbeat is the time between two comments on a quiet stream, which proxies would otherwise close.
	heartbeat = 15 * time.Second
	// readWithin is how long a client may take to read one batch before its stream is closed.
	readWithin = 30 * time.Second
)

func (h handler) serveStream(w http.ResponseWriter, request *http.Request) {
	q, ok := h.parse(w, request, "controller", "kind", "namespace", "name", "after")
	if !ok {
		return
	}
	if text := request.Header.Get("Last-Event-ID"); text != "" {
		after, err := h.parseAfter(text)
		if err != nil {
			refuse(w, http.StatusBadRequest, "Last-Event-ID must be the ID of a record, not %q", text)
			return
		}
		q.After = after
	}
	if h.Instance() == "" {
		refuse(w, http.StatusNotFound, "this process records nothing")
		return
	}
	s := &stream{Writer: sse.NewWriter(w, readWithin), instance: h.Instance()}
	if request.Method == http.MethodHead || !s.say("stream of records") {
		return
	}
	quiet := time.NewTicker(heartbeat)
	defer quiet.Stop()
	reader := h.Follow(q)
	for {
		records, lost, news := reader.Next()
		if !s.sendRecords(records, lost) {
			return
		}
		if len(records) > 0 {
			continue
		}
		select {
		case <-request.Context().Done():
			return
		case <-news:
		case <-quiet.C:
			if !s.say("still here") {
				return
			}
		}
	}
}

// stream sends records.
type stream struct {
	*sse.Writer
	instance string
}

// sendRecords reports whether the client is still connected.
func (s *stream) sendRecords(records []Record, lost uint64) bool {
	if len(records) == 0 && lost == 0 {
		return true
	}
	if lost > 0 && s.Event("lost", "", fmt.Appendf(nil, `{"records":%d}`, lost)) != nil {
		return false
	}
	for _, record := range records {
		data, err := json.Marshal(record.Value)
		if err != nil || s.Event("record", fmt.Sprintf("%s-%d", s.instance, record.ID), data) != nil {
			return false
		}
	}
	return s.Flush() == nil
}

// say sends a comment and reports whether the client is still connected.
func (s *stream) say(text string) bool { return s.Comment(text) == nil && s.Flush() == nil }
