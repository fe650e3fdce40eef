// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
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
	requests []reconcile.Request
}

func (q *queued) Add(request reconcile.Request) { q.requests = append(q.requests, request) }

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
		if len(queue.requests) != 0 {
			t.Fatalf("too early: %v", queue.requests)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(queue.requests) != 1 || queue.requests[0].NamespacedName != a {
			t.Fatalf("in time: %v", queue.requests)
		}
		time.Sleep(MinorInterval)
		synctest.Wait()
		if len(queue.requests) != 1 {
			t.Errorf("twice: %v", queue.requests)
		}
		news.arrived(a, queue)
		time.Sleep(MinorInterval)
		synctest.Wait()
		if len(queue.requests) != 2 {
			t.Errorf("again: %v", queue.requests)
		}
	})
}
