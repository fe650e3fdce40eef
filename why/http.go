// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opdock/opdock/internal/sse"
)

// Answer is what the endpoint answers to a question for records.
type Answer struct {
	Records []*Record `json:"records"`
	// Last is the ID to continue after: that of the last of these records, or the one that was asked for if there are none.
	Last uint64 `json:"last"`
	// Instance names the recorder, and is another one after a restart. Whoever continues after INSTANCE-ID, rather than ID
	// alone, begins anew then.
	Instance string  `json:"instance,omitempty"`
	Dropped  Dropped `json:"dropped"`
}

// HTTPHandler serves the records, wherever it is mounted:
//
//   - GET records?controller=&kind=&namespace=&name=&after=&limit= returns an Answer.
//   - GET summary returns a Summary.
//   - GET stream?controller=&kind=&namespace=&name=&after= is a stream of server-sent events: record, whose data is a
//     Record and whose id is INSTANCE-ID, and lost, whose data is {"records": n}, when the reader was too slow. The header
//     Last-Event-ID wins over after. Without either it begins with the records that there are, and so it does after an id
//     of another instance, which is that of the process before.
//
// It shows what is in objects, apart from Secrets. Who may see that is up to the one who mounts it.
func (r *Recorder) HTTPHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if request.Method != http.MethodGet && request.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "method %s is not allowed; use GET", request.Method)
			return
		}
		switch path.Base(request.URL.Path) {
		case "records":
			r.serveRecords(w, request)
		case "summary":
			if _, ok := r.parse(w, request); ok {
				answer(w, http.StatusOK, r.Summary())
			}
		case "stream":
			r.serveStream(w, request)
		default:
			refuse(w, http.StatusNotFound, "use records, summary or stream")
		}
	})
}

func (r *Recorder) serveRecords(w http.ResponseWriter, request *http.Request) {
	q, ok := r.parse(w, request, "controller", "kind", "namespace", "name", "after", "limit")
	if !ok {
		return
	}
	a := Answer{Records: r.Records(q), Last: q.After, Instance: r.instance()}
	if a.Records == nil {
		a.Records = []*Record{}
	}
	if count := len(a.Records); count > 0 {
		a.Last = a.Records[count-1].ID
	}
	if r != nil {
		r.mutex.Lock()
		a.Dropped = r.droppedNow()
		r.mutex.Unlock()
	}
	answer(w, http.StatusOK, a)
}

// parse reads a query, and answers itself if it makes no sense.
func (r *Recorder) parse(w http.ResponseWriter, request *http.Request, allowed ...string) (q Query, ok bool) {
	values, err := url.ParseQuery(request.URL.RawQuery)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the query is invalid: %v", err)
		return q, false
	}
	for name, given := range values {
		if !slices.Contains(allowed, name) {
			refuse(w, http.StatusBadRequest, "unknown parameter %q", name)
			return q, false
		}
		if len(given) > 1 {
			refuse(w, http.StatusBadRequest, "%s is set %d times", name, len(given))
			return q, false
		}
	}
	q = Query{Controller: values.Get("controller"), Kind: values.Get("kind"), Namespace: values.Get("namespace"), Name: values.Get("name")}
	if text := values.Get("after"); text != "" {
		if q.After, err = r.parseAfter(text); err != nil {
			refuse(w, http.StatusBadRequest, "after must be the ID of a record, not %q", text)
			return q, false
		}
	}
	if text := values.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > maxLimit {
			refuse(w, http.StatusBadRequest, "limit must be a number from 1 to %d, not %q", maxLimit, text)
			return q, false
		}
	}
	return q, true
}

// parseAfter reads the ID of a record. One of another recorder's is that of none.
func (r *Recorder) parseAfter(text string) (id uint64, err error) {
	instance, number, named := strings.Cut(text, "-")
	if !named {
		instance, number = r.instance(), text
	}
	id, err = strconv.ParseUint(number, 10, 64)
	switch {
	case err != nil:
		return 0, err
	case instance == "" && named:
		return 0, errors.New("the instance is missing")
	case instance != r.instance():
		return 0, nil
	}
	return id, nil
}

// instance tells a recorder from the one of the process before, whose records have the same IDs.
func (r *Recorder) instance() string {
	if r == nil {
		return ""
	}
	return strconv.FormatInt(r.began.UnixNano(), 36)
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, map[string]string{"error": fmt.Sprintf(format, args...)})
}

func answer(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// Whoever does not read the answer does without it.
	_, _ = w.Write(append(data, '\n'))
}

const (
	// heartbeat keeps proxies from taking a quiet stream for a dead one.
	heartbeat = 15 * time.Second
	// readWithin is how long a reader may take for what is sent together, before it is given up.
	readWithin = 30 * time.Second
)

func (r *Recorder) serveStream(w http.ResponseWriter, request *http.Request) {
	q, ok := r.parse(w, request, "controller", "kind", "namespace", "name", "after")
	if !ok {
		return
	}
	if text := request.Header.Get("Last-Event-ID"); text != "" {
		after, err := r.parseAfter(text)
		if err != nil {
			refuse(w, http.StatusBadRequest, "Last-Event-ID must be the ID of a record, not %q", text)
			return
		}
		q.After = after
	}
	if r == nil {
		refuse(w, http.StatusNotFound, "this process records nothing")
		return
	}
	s := &stream{Writer: sse.NewWriter(w, readWithin), instance: r.instance()}
	if request.Method == http.MethodHead || !s.say("stream of records") {
		return
	}
	quiet := time.NewTicker(heartbeat)
	defer quiet.Stop()
	f := r.follow(q)
	for {
		records, lost, news := f.next()
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

// sendRecords says whether the reader is still there.
func (s *stream) sendRecords(records []*Record, lost uint64) bool {
	if len(records) == 0 && lost == 0 {
		return true
	}
	if lost > 0 && s.Event("lost", "", fmt.Appendf(nil, `{"records":%d}`, lost)) != nil {
		return false
	}
	for _, record := range records {
		data, err := json.Marshal(record)
		if err != nil || s.Event("record", fmt.Sprintf("%s-%d", s.instance, record.ID), data) != nil {
			return false
		}
	}
	return s.Flush() == nil
}

// say says whether the reader is still there.
func (s *stream) say(text string) bool { return s.Comment(text) == nil && s.Flush() == nil }
