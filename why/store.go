// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"slices"
	"time"
)

// store keeps the newest records, within bounds. Stored records never change, so readers need the recorder's lock
// only to find them.
type store struct {
	maxRecords, maxBytes, maxPerObject int

	first, last *kept
	count       int
	byObject    map[objectKey]*history
	bytes       int
	// published counts all records that ever were here.
	published uint64
	// dropped counts the records that were dropped, and gone is a ring of the last of them, oldest at oldestGone.
	dropped    uint64
	gone       []goneRecord
	oldestGone int
	// flips is the number of fields that are watched for loops, and forgot the time at which inactive ones were last
	// dropped.
	flips  int
	forgot time.Time
}

// kept is a record in two lists: of all records, and of its object. Both are in the order in which reconciles ended.
type kept struct {
	record *Record
	bytes  int
	// sequence counts in the order in which reconciles ended. IDs count in the order in which they started.
	sequence       uint64
	previous, next *kept
	earlier, later *kept
	history        *history
}

// goneRecord is the remainder of a dropped record. It serves to count the records that a reader has missed.
type goneRecord struct {
	sequence uint64
	key      objectKey
}

// maxGone is how many of them there are.
const maxGone = 1024

type objectKey struct{ controller, group, kind, namespace, name string }

// history are the records of one object.
type history struct {
	key         objectKey
	first, last *kept
	count       int
	// reconciles is the number of reconciles, including those whose records were dropped.
	reconciles int
	// flips are the fields of what led to its reconciles that have changed lately.
	flips map[flipKey]*flip
}

func newStore(o Options) *store {
	return &store{
		maxRecords: o.MaxRecords, maxBytes: o.MaxBytes, maxPerObject: o.MaxPerObject,
		byObject: map[objectKey]*history{},
	}
}

// of returns the history of an object; nil if there is none.
func (s *store) of(key objectKey) *history { return s.byObject[key] }

func (s *store) add(key objectKey, record *Record) *history {
	h := s.byObject[key]
	if h == nil {
		h = &history{key: key}
		s.byObject[key] = h
	}
	s.published++
	k := &kept{record: record, bytes: sizeOf(record), sequence: s.published, previous: s.last, earlier: h.last, history: h}
	if s.last == nil {
		s.first = k
	} else {
		s.last.next = k
	}
	s.last = k
	if h.last == nil {
		h.first = k
	} else {
		h.last.later = k
	}
	h.last = k
	h.count++
	h.reconciles++
	s.count++
	s.bytes += k.bytes
	if h.count > s.maxPerObject {
		s.remove(h.first)
	}
	for s.count > s.maxRecords || s.bytes > s.maxBytes && s.first != s.last {
		s.remove(s.first)
	}
	return h
}

func (s *store) remove(k *kept) {
	s.dropped++
	if forgotten := (goneRecord{k.sequence, k.history.key}); len(s.gone) < maxGone {
		s.gone = append(s.gone, forgotten)
	} else {
		s.gone[s.oldestGone] = forgotten
		s.oldestGone = (s.oldestGone + 1) % maxGone
	}
	s.bytes -= k.bytes
	s.count--
	if k.previous == nil {
		s.first = k.next
	} else {
		k.previous.next = k.next
	}
	if k.next == nil {
		s.last = k.previous
	} else {
		k.next.previous = k.previous
	}
	h := k.history
	if k.earlier == nil {
		h.first = k.later
	} else {
		k.earlier.later = k.later
	}
	if k.later == nil {
		h.last = k.earlier
	} else {
		k.later.earlier = k.earlier
	}
	if h.count--; h.count == 0 {
		s.flips -= len(h.flips)
		delete(s.byObject, h.key)
	}
	// A reader may hold on to it, but must not hold on to all that ever followed.
	k.previous, k.next, k.earlier, k.later = nil, nil, nil, nil
}

// after returns the sequence number of a record, to continue reading after it. If the record was dropped, the number
// is approximate: reconciles end nearly in the order in which they start. An ID that no record has had yet comes from
// the recorder of a previous process, and 0 means none; in both cases the reader has seen nothing.
func (s *store) after(id, lastID uint64) uint64 {
	for k := s.last; k != nil && id != 0; k = k.previous {
		if k.record.ID == id {
			return k.sequence
		}
	}
	oldest := s.published
	if s.first != nil {
		oldest = s.first.sequence - 1
	}
	if id == 0 || id > lastID {
		return oldest
	}
	return min(id, s.published)
}

// since returns at most limit records after a sequence number that match a query, in the order in which they ended.
// It also returns the number up to which it has searched, and how many matching records were dropped before that.
// Records up to the number known do not count as missed.
func (s *store) since(sequence, known uint64, limit int, q *Query) (records []*Record, reached, lost uint64) {
	reached = sequence
	start := s.last
	for start != nil && start.previous != nil && start.previous.sequence > sequence {
		start = start.previous
	}
	passed := uint64(0)
	for k := start; k != nil && len(records) < limit; k = k.next {
		if k.sequence <= sequence {
			continue
		}
		if k.sequence > known {
			passed++
		}
		reached = k.sequence
		if q.wants(k.record) {
			records = append(records, k.record)
		}
	}
	from := max(sequence, known)
	switch {
	case reached <= from:
	case q.wantsAll():
		lost = reached - from - passed
	default:
		lost = s.goneBetween(from, reached, q)
	}
	return records, reached, lost
}

// goneBetween returns how many matching records between two numbers were dropped, as far as that is remembered.
func (s *store) goneBetween(after, before uint64, q *Query) (number uint64) {
	for i := range s.gone {
		g := &s.gone[i]
		if g.sequence > after && g.sequence < before && q.wantsOf(g.key.controller, g.key.kind, g.key.namespace, g.key.name) {
			number++
		}
	}
	return number
}

// newest returns at most limit of the newest records that match a query, oldest first.
func (s *store) newest(limit int, q *Query) (records []*Record) {
	for k := s.last; k != nil && len(records) < limit; k = k.previous {
		if q.wants(k.record) {
			records = append(records, k.record)
		}
	}
	slices.Reverse(records)
	return records
}

// sizeOf is about how many bytes a record takes.
func sizeOf(r *Record) int {
	const record, cause, change, write, finding, writer = 600, 480, 48, 300, 120, 80
	bytes := record + len(r.Object.Namespace) + len(r.Object.Name) + len(r.Error)
	for i := range r.Causes {
		c := &r.Causes[i]
		bytes += cause + len(c.By)*writer
		for _, changed := range c.Changes {
			bytes += change + len(changed.Path) + len(changed.Old) + len(changed.New)
		}
	}
	for i := range r.Writes {
		bytes += write + len(r.Writes[i].Error)
	}
	for _, f := range r.Findings {
		bytes += finding + len(f.Message) + len(f.Path) + len(f.Writers)*writer
	}
	return bytes
}
