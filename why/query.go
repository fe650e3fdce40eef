// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"iter"
	"strings"
)

// Query selects records. Empty fields match all records.
type Query struct {
	Controller string
	// Kind, Namespace and Name identify the reconciled object. The case of the kind does not matter.
	Kind, Namespace, Name string
	// After is the ID of the last record that the caller has seen. Records are in the order in which reconciles ended,
	// so later records may have smaller IDs.
	After uint64
	// Limit is how many records to return at most, the newest ones if After is not set: 100, and no more than 1000.
	Limit int
}

func (q *Query) wants(r *Record) bool {
	return q.wantsOf(r.Controller, r.Object.Kind, r.Object.Namespace, r.Object.Name)
}

func (q *Query) wantsOf(controller, kind, namespace, name string) bool {
	return (q.Controller == "" || q.Controller == controller) &&
		(q.Kind == "" || strings.EqualFold(q.Kind, kind)) &&
		(q.Namespace == "" || q.Namespace == namespace) &&
		(q.Name == "" || q.Name == name)
}

func (q *Query) wantsAll() bool {
	return q.Controller == "" && q.Kind == "" && q.Namespace == "" && q.Name == ""
}

const defaultLimit, maxLimit = 100, 1000

func (q *Query) limit() int {
	if q.Limit <= 0 {
		return defaultLimit
	}
	return min(q.Limit, maxLimit)
}

// Records returns records in the order in which the reconciles ended. Callers must not modify
// them.
func (r *Recorder) Records(q Query) (records []*Record) {
	if r == nil {
		return nil
	}
	r.readSettled(func() {
		if q.After == 0 {
			records = r.store.newest(q.limit(), &q)
		} else {
			records, _, _ = r.store.since(r.store.after(q.After, r.lastID.Load()), 0, q.limit(), &q)
		}
	})
	return records
}

// Follow returns the existing records, or those after Query.After, and then each new one until
// the context ends. With each record comes the number of records before it that were dropped
// because the reader was too slow or came back too late. If the query selects only some
// records, this number may be incomplete. Callers must not modify records.
//
// A slow reader delays nothing: it reads from the records that the recorder keeps anyway.
func (r *Recorder) Follow(ctx context.Context, q Query) iter.Seq2[*Record, uint64] {
	return func(yield func(*Record, uint64) bool) {
		if r == nil {
			return
		}
		f := r.follow(q)
		for {
			records, lost, news := f.next()
			for _, record := range records {
				if ctx.Err() != nil || !yield(record, lost) {
					return
				}
				lost = 0
			}
			if len(records) > 0 {
				continue
			}
			f.lost += lost // reported with the next one
			select {
			case <-ctx.Done():
				return
			case <-news:
			}
		}
	}
}

// follower is a reader's place.
type follower struct {
	recorder *Recorder
	query    Query
	sequence uint64
	// known is the number up to which nothing counts as missed: a reader that has seen nothing starts with the
	// existing records.
	known uint64
	lost  uint64
}

func (r *Recorder) follow(q Query) *follower {
	f := &follower{recorder: r, query: q}
	r.readSettled(func() {
		lastID := r.lastID.Load()
		f.sequence = r.store.after(q.After, lastID)
		if q.After == 0 || q.After > lastID {
			f.known = r.store.published
		}
	})
	return f
}

// next returns new records, the number of lost records, and a channel that is closed when there
// is more.
func (f *follower) next() (records []*Record, lost uint64, news <-chan struct{}) {
	const batch = 64
	r := f.recorder
	r.readSettled(func() {
		records, f.sequence, lost = r.store.since(f.sequence, f.known, batch, &f.query)
		lost, f.lost = lost+f.lost, 0
		if len(records) > 0 {
			return
		}
		if r.news == nil {
			r.news = make(chan struct{})
		}
		news = r.news
		r.backlog.await()
	})
	return records, lost, news
}
