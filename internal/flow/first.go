// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A new object that makes progress has nothing to report but that, and many are ready within a second. So its first status
// waits for a moment, which saves a write if the next one says that it is ready. Nothing takes it for ready meanwhile:
// by the CRD's default, its status.observedGeneration is 0 until then. A failure, a standstill and a new generation of an
// object that has a status are reported at once.
const (
	// firstStatus is how long the first status of an object can wait if no other one waits.
	firstStatus = time.Second
	// firstStatusEach is how much longer it can wait for each other object that waits as well. When many are created
	// together, this bounds the writes that report progress to 20 a second, and leaves the server to those that make it.
	firstStatusEach = 50 * time.Millisecond
	// maxFirstStatus bounds the wait, however many there are.
	maxFirstStatus = 30 * time.Second
)

// firstStatuses remembers when the first status of each object is due that waits for it.
type firstStatuses struct {
	mutex sync.Mutex
	due   map[types.NamespacedName]time.Time
}

// wait returns how long the first status of an object can still wait, and 0 if it is due.
func (f *firstStatuses) wait(key types.NamespacedName, now time.Time) time.Duration {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.due == nil {
		f.due = map[types.NamespacedName]time.Time{}
	}
	due, waits := f.due[key]
	if !waits {
		due = now.Add(min(firstStatus+time.Duration(len(f.due))*firstStatusEach, maxFirstStatus))
		f.due[key] = due
	}
	return max(0, due.Sub(now))
}

// done is called when the status has been written, or never will be.
func (f *firstStatuses) done(key types.NamespacedName) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.due, key)
}

// mayWait returns how long the status of an object can wait after a pass with this result, and 0 if it cannot.
func (r *Reconciler[T]) mayWait(before T, result outcome) time.Duration {
	if r.StatusIsMemory || result != outcomeWaiting || len(*r.View(before).Conditions) > 0 {
		return 0
	}
	return r.first.wait(client.ObjectKeyFromObject(before), r.Clock.Now())
}
