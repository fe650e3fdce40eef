// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import "k8s.io/client-go/util/workqueue"

// Note is for handlers that hold events back and ask for a reconcile only later, once for many: it says that an event leads
// to the next reconcile, whichever that is. The queue is the one that the handler was given with the event. It does nothing
// if that is not one of a recorder.
func Note[request comparable](queue workqueue.TypedRateLimitingInterface[request], item request) {
	switch q := queue.(type) {
	case *priorityQueue[request]:
		q.note(item, 0)
	case *classicQueue[request]:
		q.note(item, 0)
	}
}
