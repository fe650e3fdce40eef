// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"time"

	"github.com/opdock/opdock/internal/findings"
	"github.com/opdock/opdock/internal/loopback"
	"github.com/opdock/opdock/internal/tree"
)

// Options configures the page.
type Options struct {
	// Title is where all of this happens, such as `cluster "dock"`.
	Title string
	// Tree is the content of the left side.
	Tree *tree.Model
	// Records serves records, summary and stream of a recorder of package why; nil if nothing is recorded.
	Records http.Handler
	// Operator serves the records of an operator in separate processes, instead of Records; nil if there is none.
	Operator *Relay
	// Findings tracks problems in Records; an Operator has its own.
	Findings *findings.Tracker
	// Changes are the changes of objects that the page shows even if they led to no reconcile; nil if they are not recorded.
	Changes *Changes
	// Traffic holds the requests and watch events of the operator; nil without a lens.
	Traffic *Traffic
	// Rights returns the report of opdock rbac -o json; nil if it is unknown.
	Rights func(context.Context) (any, error)
	// Until is when a recording that is shown has ended; zero if the page is live.
	Until time.Time
	// Address is where Start listens; a free port of loopback if empty.
	Address string
	// StateDir is the folder for the note with the address of the page; none if empty.
	StateDir string
	// Project is the folder of the project that the page is about, for the note; empty if it is about none.
	Project string
	// MaxStreams is the maximum number of concurrent streams; 16 if 0. A visible page needs two.
	MaxStreams int

	// answerWithin is how long a client may take to read an answer; tests do not wait for writeTimeout.
	answerWithin time.Duration
}

const defaultMaxStreams = 16

//go:embed static
var static embed.FS

// Server is the page as an HTTP handler. It accepts requests to loopback from its own pages, and from programs
// that are not browsers.
type Server struct {
	options Options
	mux     *http.ServeMux
	// instance distinguishes the streams of this server from those of an earlier one at the same address.
	instance string
	streams  loopback.Streams
}

// New returns the page. Most callers use Start.
func New(o Options) (*Server, error) {
	if o.Tree == nil {
		o.Tree = tree.NewModel()
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = defaultMaxStreams
	}
	s := &Server{options: o, mux: http.NewServeMux(), instance: rand.Text()[:8], streams: loopback.NewStreams(o.MaxStreams)}
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, fmt.Errorf("reading the page's files: %w", err)
	}
	assets, err := newAssets(files)
	if err != nil {
		return nil, err
	}
	s.mux.Handle("/", assets)
	s.mux.HandleFunc("/api/tree", s.serveTree)
	s.mux.HandleFunc("/api/rights", s.serveRights)
	s.mux.Handle("/api/stream", s.bounded(http.HandlerFunc(s.serveStream)))
	records := o.Records
	switch {
	case o.Operator != nil:
		records = o.Operator
		s.options.Findings = o.Operator.Findings()
	case records == nil:
		records = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusNotFound, "nothing is recorded here")
		})
	}
	records = http.StripPrefix("/why", records)
	s.mux.Handle("/why/", records)
	s.mux.Handle("/why/stream", s.bounded(records))
	return s, nil
}

// ServeHTTP refuses requests that a page of another origin can make.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	if status, reason := check(r); status != http.StatusOK {
		if status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", "GET, HEAD")
		}
		refuse(w, status, reason)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// bounded limits the number of streams, so forgotten pages have a bounded cost.
func (s *Server) bounded(next http.Handler) http.Handler {
	return s.streams.Limit(next, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("too many pages are open: %d streams are open already, and each page needs two", cap(s.streams)))
	})
}

// serveRights serves the report about rights.
func (s *Server) serveRights(w http.ResponseWriter, r *http.Request) {
	if s.options.Rights == nil {
		refuse(w, http.StatusNotFound, "this page has no record of the rights that the operator uses")
		return
	}
	report, err := s.options.Rights(r.Context())
	if err != nil {
		refuse(w, http.StatusInternalServerError, err.Error())
		return
	}
	answer(w, report)
}

func refuse(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": reason})
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	// A write error means that the client has disconnected.
	_ = json.NewEncoder(w).Encode(value)
}
