// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package lens

import (
	"context"
	"iter"
	"sync"
)

// Stream holds the events of a lens, in order. The latest events are kept for readers, which
// read at their own pace: a reader that is too slow loses events, gets their number, and does
// not delay others.
type Stream struct {
	most int64

	mutex  sync.Mutex
	events []kept // a ring; the oldest event is at first
	first  int
	count  int
	size   int64
	last   uint64
	closed bool
	// news is closed by the next event, and ended with the stream. No reader waits if news is nil.
	news, ended chan struct{}
	totals      Totals
}

type kept struct {
	Event
	size int64
}

func newStream(most int64) *Stream {
	return &Stream{most: most, ended: make(chan struct{}), totals: newTotals()}
}

// add numbers an event.
func (s *Stream) add(e Event) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.last++
	e.Seq = s.last
	s.totals.add(&e)
	size := sizeOf(&e)
	for s.count > 0 && s.size+size > s.most {
		s.size -= s.events[s.first].size
		s.events[s.first] = kept{}
		s.first = (s.first + 1) % len(s.events)
		s.count--
	}
	if s.count == len(s.events) {
		larger := make([]kept, max(64, 2*len(s.events)))
		for i := range s.count {
			larger[i] = s.events[(s.first+i)%len(s.events)]
		}
		s.events, s.first = larger, 0
	}
	s.events[(s.first+s.count)%len(s.events)] = kept{e, size}
	s.count++
	s.size += size
	s.announce()
}

func (s *Stream) announce() {
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

func (s *Stream) close() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.closed {
		s.closed = true
		close(s.ended)
		s.announce()
	}
}

func (s *Stream) isClosed() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.closed
}

// Last is the number of the latest event.
func (s *Stream) Last() uint64 {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.last
}

// Totals returns the totals so far, including events that are no longer kept.
func (s *Stream) Totals() Totals {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.totals.clone()
}

// Follow returns the kept events after a number, and then each new one, until the context ends
// or the lens is closed. With each event comes the number of lost events before it.
func (s *Stream) Follow(ctx context.Context, after uint64) iter.Seq2[*Event, uint64] {
	return func(yield func(*Event, uint64) bool) {
		for {
			batch, lost, news, closed := s.since(after)
			for i := range batch {
				if ctx.Err() != nil || !yield(&batch[i], lost) {
					return
				}
				lost, after = 0, batch[i].Seq
			}
			if len(batch) > 0 {
				continue
			}
			if closed {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-news:
			}
		}
	}
}

func (s *Stream) since(after uint64) (batch []Event, lost uint64, news <-chan struct{}, closed bool) {
	const most = 256
	s.mutex.Lock()
	defer s.mutex.Unlock()
	oldest := s.last - uint64(s.count) + 1
	skip := 0
	if after+1 > oldest {
		skip = int(after + 1 - oldest) //nolint:gosec // at most count
	} else {
		lost = oldest - after - 1
	}
	for i := skip; i < s.count && len(batch) < most; i++ {
		batch = append(batch, s.events[(s.first+i)%len(s.events)].Event)
	}
	if len(batch) == 0 && s.news == nil {
		s.news = make(chan struct{})
	}
	return batch, lost, s.news, s.closed
}

// sizeOf is about how many bytes an event takes.
func sizeOf(e *Event) int64 {
	const itself, each = 600, 64
	size := itself
	var change *Change
	switch {
	case e.Request != nil:
		size += len(e.Request.Message) + len(e.Request.Path) + len(e.Request.UserAgent) + len(e.Request.Implies)*3*each +
			len(e.Request.Deleted)*each
		change = e.Request.Change
	case e.Delivery != nil:
		change = e.Delivery.Change
	}
	if change != nil {
		size += each * len(change.By)
		for i := range change.Fields {
			size += each + len(change.Fields[i].Path) + len(change.Fields[i].Old) + len(change.Fields[i].New)
		}
	}
	return int64(size)
}
