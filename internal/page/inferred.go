// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"path"
	"sync"
	"time"

	"github.com/opdock/opdock/why"
)

// Inferred serves records that no process serves, such as those of a recording, like a recorder. A recorder itself does not count the
// records that it only gathers, so its summary would have no controllers.
type Inferred struct {
	// Since is when the first record may have begun.
	Since time.Time

	kept   *why.Recorder
	mutex  sync.Mutex
	counts counts
}

// NewInferred returns one without records.
func NewInferred() *Inferred { return &Inferred{kept: why.New(why.Options{})} }

// Add keeps a record, and counts it. It must not be changed later.
func (i *Inferred) Add(record *why.Record) {
	i.mutex.Lock()
	i.counts.add(record)
	i.mutex.Unlock()
	i.kept.Gather(record)
}

// ServeHTTP serves records, summary and stream as a recorder does.
func (i *Inferred) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if path.Base(request.URL.Path) != "summary" {
		i.kept.HTTPHandler().ServeHTTP(w, request)
		return
	}
	summary := i.kept.Summary()
	summary.Since = i.Since
	i.mutex.Lock()
	summary.Controllers = i.counts.summaries()
	i.mutex.Unlock()
	answer(w, summary)
}
