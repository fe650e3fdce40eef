// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import "k8s.io/client-go/util/workqueue"

// Note is for handlers that hold back events and request one reconcile for many of them: it
// records an event as a cause of the next reconcile. The queue is the one that the handler got
// with the event. Note does nothing if the queue does not belong to a recorder.
func Note[request comparable](queue workqueue.TypedRateLimitingInterface[request], item request) {
	switch q := queue.(type) {
	case *priorityQueue[request]:
		q.note(item, 0)
	case *classicQueue[request]:
		q.note(item, 0)
	}
}
