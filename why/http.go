// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"net/http"
	"strconv"

	"github.com/opdock/opdock/why/internal/serving"
)

// Answer is the response to a request for records.
type Answer struct {
	Records []*Record `json:"records"`
	// Last is the ID to continue after: the ID of the last of these records, or the requested one if there are none.
	Last uint64 `json:"last"`
	// Instance names the recorder, and changes with a restart. A client that continues after INSTANCE-ID, not after ID
	// alone, then starts again from the beginning.
	Instance string  `json:"instance,omitempty"`
	Dropped  Dropped `json:"dropped"`
}

// HTTPHandler serves the records, wherever it is mounted:
//
//   - GET records?controller=&kind=&namespace=&name=&after=&limit= returns an Answer.
//   - GET summary returns a Summary.
//   - GET stream?controller=&kind=&namespace=&name=&after= returns a stream of server-sent events. The event record has a
//     Record as data and INSTANCE-ID as id. The event lost has the data {"records": n}, if the client was too slow. The
//     header Last-Event-ID overrides after. Without either, and after an id of another instance, such as the previous
//     process, the stream begins with the existing records.
//
// It shows the content of objects, except Secrets. You decide who can reach it.
func (r *Recorder) HTTPHandler() http.Handler { return serving.Handler(served{r}, maxLimit) }

// served adapts a recorder, which may be nil, to package serving.
type served struct{ recorder *Recorder }

// Instance implements serving.Source.
func (s served) Instance() string { return s.recorder.instance() }

// Summary implements serving.Source.
func (s served) Summary() any { return s.recorder.Summary() }

// Records implements serving.Source.
func (s served) Records(q serving.Query) any {
	r := s.recorder
	a := Answer{Records: r.Records(queryOf(q)), Last: q.After, Instance: r.instance()}
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
	return a
}

// Follow implements serving.Source.
func (s served) Follow(q serving.Query) serving.Follower { return s.recorder.follow(queryOf(q)) }

// Next implements serving.Follower.
func (f *follower) Next() (records []serving.Record, lost uint64, news <-chan struct{}) {
	found, lost, news := f.next()
	for _, record := range found {
		records = append(records, serving.Record{ID: record.ID, Value: record})
	}
	return records, lost, news
}

func queryOf(q serving.Query) Query {
	return Query{Controller: q.Controller, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name, After: q.After, Limit: q.Limit}
}

// instance distinguishes a recorder from that of a previous process, whose records have the same IDs.
func (r *Recorder) instance() string {
	if r == nil {
		return ""
	}
	return strconv.FormatInt(r.began.UnixNano(), 36)
}
