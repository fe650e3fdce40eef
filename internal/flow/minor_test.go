// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opdock/opdock/why"
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
		// A reconcile for another reason includes the delayed event.
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

// TestMinorNewsAreCauses looks at what is recorded of events that are held back: all of them led to the look that follows,
// be it their own or that of another event.
func TestMinorNewsAreCauses(t *testing.T) {
	for name, wait := range map[string]bool{"in time": true, "for another reason": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var news minorNews
				queue := &queued{}
				recorder := why.New(why.Options{})
				controller := recorder.Controller("robot", &appsv1.Deployment{})
				handle := controller.Handler(handler.Funcs{
					UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
						(&minorQueue{TypedRateLimitingInterface: q, news: &news}).Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
					},
					DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
						q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
					},
				})
				version := func(n int) *appsv1.Deployment {
					d := &appsv1.Deployment{}
					d.Name, d.ResourceVersion, d.Status.Replicas = "a", strconv.Itoa(n), int32(n)
					return d
				}
				for n := range 3 {
					handle.Update(t.Context(), event.UpdateEvent{ObjectOld: version(n), ObjectNew: version(n + 1)}, queue)
				}
				want := 3
				if wait {
					time.Sleep(MinorInterval)
				} else {
					handle.Delete(t.Context(), event.DeleteEvent{Object: version(3)}, queue)
					want++
				}
				synctest.Wait()
				if len(queue.all()) != 1 {
					t.Fatalf("there is %v in the queue", queue.all())
				}
				look := controller.Reconciler(reconcile.Func(func(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
					news.seen(request.NamespacedName)
					return reconcile.Result{}, nil
				}))
				if _, err := look.Reconcile(t.Context(), queue.all()[0]); err != nil {
					t.Fatal(err)
				}
				records := recorder.Records(why.Query{})
				if len(records) != 1 || len(records[0].Causes) != want || records[0].Folded != want {
					t.Errorf("the records are %+v", records)
				}
				time.Sleep(MinorInterval)
				synctest.Wait()
				if len(queue.all()) != 1 {
					t.Errorf("what was seen is in the queue once more: %v", queue.all())
				}
			})
		})
	}
}
