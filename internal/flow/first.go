// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The first status of a new object only reports progress, and many objects are ready within a second. So the first
// status waits for a moment, which saves a write if the object becomes ready meanwhile. Clients do not take it for
// ready: by the CRD's default, its status.observedGeneration is 0 until then. A failure, a stalled object and a new
// generation of an object with a status are reported at once.
const (
	// firstStatus is how long the first status of an object can wait if no other one waits.
	firstStatus = time.Second
	// firstStatusEach is the additional delay for each other object that waits. When many objects are created
	// together, this limits writes that only report progress to 20 a second.
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
