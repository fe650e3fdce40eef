// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// keptRemovals is how many removed objects are kept for readers. A reader that comes later gets all objects again.
const keptRemovals = 1000

// history holds the revision of the model at which each object last changed. Readers only keep their last revision,
// so slow readers do not make it grow.
type history struct {
	revision uint64
	at       map[types.UID]uint64
	removals []removal
	// forgotten is the revision up to which removals were dropped.
	forgotten uint64
	next      chan struct{}
}

type removal struct {
	uid types.UID
	at  uint64
}

func newHistory() history { return history{at: map[types.UID]uint64{}, next: make(chan struct{})} }

func (h *history) set(uid types.UID) {
	h.advance()
	h.at[uid] = h.revision
}

func (h *history) remove(uid types.UID) {
	h.advance()
	delete(h.at, uid)
	h.removals = append(h.removals, removal{uid, h.revision})
	if len(h.removals) > 2*keptRemovals {
		h.forgotten = h.removals[keptRemovals-1].at
		h.removals = slices.Clone(h.removals[keptRemovals:])
	}
}

func (h *history) advance() {
	h.revision++
	close(h.next)
	h.next = make(chan struct{})
}

// Delta holds the changes since a revision.
type Delta struct {
	// Revision is the argument of the next call of Since.
	Revision uint64
	// Whole means that Objects contains all objects, and all others were removed.
	Whole   bool
	Objects []Object
	Removed []types.UID
}

// Since returns the changes after a revision. Revision 0 returns all objects.
func (m *Model) Since(revision uint64) Delta {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	h := &m.history
	delta := Delta{Revision: h.revision, Whole: revision == 0 || revision < h.forgotten || revision > h.revision}
	for uid, at := range h.at {
		if delta.Whole || at > revision {
			delta.Objects = append(delta.Objects, m.objects[uid])
		}
	}
	if !delta.Whole {
		for _, gone := range h.removals {
			if _, back := h.at[gone.uid]; gone.at > revision && !back {
				delta.Removed = append(delta.Removed, gone.uid)
			}
		}
	}
	return delta
}

// Next returns a channel that is closed at the next change of an object. Several readers may share it.
func (m *Model) Next() <-chan struct{} {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.history.next
}
