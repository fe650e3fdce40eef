// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving serves the records of a recorder over HTTP. It handles requests, streams and limits. The source
// defines the content of a record.
package serving

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
)

// Query selects records. Empty fields match all, and After is the ID to continue after.
type Query struct {
	Controller, Kind, Namespace, Name string
	After                             uint64
	Limit                             int
}

// Source has the records.
type Source interface {
	// Instance distinguishes a source from that of a previous process, whose records have the same IDs. It is empty if
	// nothing is recorded.
	Instance() string
	// Records and Summary return values to encode as JSON.
	Records(q Query) any
	Summary() any
	// Follow returns a reader of the records that a query selects, and of later ones.
	Follow(q Query) Follower
}

// Follower is the place of a reader.
type Follower interface {
	// Next returns new records, how many were lost before them, and a channel that is closed when there are more.
	Next() (records []Record, lost uint64, news <-chan struct{})
}

// Record is a record and its ID.
type Record struct {
	ID    uint64
	Value any
}

type handler struct {
	Source
	maxLimit int
}

// Handler serves records, summary and stream at any mount point. A query returns at most maxLimit records.
func Handler(source Source, maxLimit int) http.Handler { return handler{source, maxLimit} }

// ServeHTTP implements http.Handler.
func (h handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "method %s is not allowed; use GET", request.Method)
		return
	}
	switch path.Base(request.URL.Path) {
	case "records":
		if q, ok := h.parse(w, request, "controller", "kind", "namespace", "name", "after", "limit"); ok {
			answer(w, http.StatusOK, h.Records(q))
		}
	case "summary":
		if _, ok := h.parse(w, request); ok {
			answer(w, http.StatusOK, h.Summary())
		}
	case "stream":
		h.serveStream(w, request)
	default:
		refuse(w, http.StatusNotFound, "use records, summary or stream")
	}
}

// parse reads a query. It answers the request itself if the query is invalid.
func (h handler) parse(w http.ResponseWriter, request *http.Request, allowed ...string) (q Query, ok bool) {
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
		if q.After, err = h.parseAfter(text); err != nil {
			refuse(w, http.StatusBadRequest, "after must be the ID of a record, not %q", text)
			return q, false
		}
	}
	if text := values.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > h.maxLimit {
			refuse(w, http.StatusBadRequest, "limit must be a number from 1 to %d, not %q", h.maxLimit, text)
			return q, false
		}
	}
	return q, true
}

// parseAfter reads the ID of a record. It returns 0 for a record of another instance.
func (h handler) parseAfter(text string) (id uint64, err error) {
	instance, number, named := strings.Cut(text, "-")
	if !named {
		instance, number = h.Instance(), text
	}
	id, err = strconv.ParseUint(number, 10, 64)
	switch {
	case err != nil:
		return 0, err
	case instance == "" && named:
		return 0, errors.New("the instance is missing")
	case instance != h.Instance():
		return 0, nil
	}
	return id, nil
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
	// If the client does not read the response, it is lost.
	_, _ = w.Write(append(data, '\n'))
}
