// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"slices"
	"sync"
)

// feed holds the latest of what happens, for pages that come later or read slowly. A nil feed has nothing. Its methods may be
// called from several goroutines.
type feed[T any] struct {
	// most is how many are kept at least; up to twice as many are.
	most int

	mutex sync.Mutex
	kept  []T
	last  uint64
	news  chan struct{}
}

func newFeed[T any](most int) *feed[T] { return &feed[T]{most: most, news: make(chan struct{})} }

// Add adds an entry. It never waits for readers.
func (f *feed[T]) Add(one T) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.last++
	f.kept = append(f.kept, one)
	if len(f.kept) > 2*f.most {
		f.kept = slices.Clone(f.kept[len(f.kept)-f.most:])
	}
	close(f.news)
	f.news = make(chan struct{})
}

// since returns at most limit entries after a number, the number of the last of them, and how
// many are no longer kept.
func (f *feed[T]) since(seen uint64, most int) (batch []T, last, lost uint64) {
	if f == nil {
		return nil, seen, 0
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if seen > f.last {
		seen = 0
	}
	oldest := f.last - uint64(len(f.kept)) // the number before the first that is kept
	if seen < oldest {
		lost, seen = oldest-seen, oldest
	}
	from := int(seen - oldest) //nolint:gosec // at most as many as are kept
	batch = slices.Clone(f.kept[from:min(len(f.kept), from+most)])
	return batch, seen + uint64(len(batch)), lost
}

func (f *feed[T]) next() <-chan struct{} {
	if f == nil {
		return nil
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.news
}
