// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queued is a queue that only remembers what was added.
type queued struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	mutex    sync.Mutex
	requests []reconcile.Request
}

func (q *queued) Add(request reconcile.Request) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.requests = append(q.requests, request)
}

func (q *queued) all() []reconcile.Request {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.requests
}

func TestMinorNewsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var news minorNews
		queue := &queued{}
		a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
		news.arrived(a, queue)
		time.Sleep(MinorInterval / 2)
		news.arrived(a, queue)
		news.arrived(b, queue)
		// Whoever is looked at for another reason has seen the news.
		news.seen(b)
		time.Sleep(MinorInterval/2 - time.Nanosecond)
		synctest.Wait()
		if len(queue.all()) != 0 {
			t.Fatalf("too early: %v", queue.all())
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(queue.all()) != 1 || queue.all()[0].NamespacedName != a {
			t.Fatalf("in time: %v", queue.all())
		}
		time.Sleep(MinorInterval)
		synctest.Wait()
		if len(queue.all()) != 1 {
			t.Errorf("twice: %v", queue.all())
		}
		news.arrived(a, queue)
		time.Sleep(MinorInterval)
		synctest.Wait()
		if len(queue.all()) != 2 {
			t.Errorf("again: %v", queue.all())
		}
	})
}
