// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source wraps a source that has no handler, or one that cannot be wrapped, so that its reconciles are known to be owed to
// something that is no watch. If its handler is wrapped by TypedHandler, that one knows better, and this changes nothing.
func Source[request comparable](c *Controller, s source.TypedSource[request]) source.TypedSource[request] {
	if c == nil {
		return s
	}
	wrapped := &rawSource[request]{controller: c, TypedSource: s}
	if syncing, ok := s.(source.TypedSyncingSource[request]); ok {
		return &syncingSource[request]{rawSource: wrapped, syncing: syncing}
	}
	return wrapped
}

type rawSource[request comparable] struct {
	source.TypedSource[request]
	controller *Controller
}

// Start implements source.TypedSource.
func (s *rawSource[request]) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[request]) error {
	if priority, ok := queue.(priorityqueue.PriorityQueue[request]); ok {
		queue = &sourceQueue[request]{PriorityQueue: priority, controller: s.controller}
	}
	return s.TypedSource.Start(ctx, queue)
}

// String is the name of the source in logs.
func (s *rawSource[request]) String() string { return fmt.Sprint(s.TypedSource) }

type syncingSource[request comparable] struct {
	*rawSource[request]
	syncing source.TypedSyncingSource[request]
}

// WaitForSync implements source.TypedSyncingSource.
func (s *syncingSource[request]) WaitForSync(ctx context.Context) error {
	return s.syncing.WaitForSync(ctx)
}

// sourceQueue notes what is asked of it without an event. Controllers hand priority queues to their sources in any case.
type sourceQueue[request comparable] struct {
	priorityqueue.PriorityQueue[request]
	controller *Controller
}

func (q *sourceQueue[request]) note(item request, after time.Duration) {
	q.controller.happened(Generic, nil, nil).note(item, after)
}

// Add implements workqueue.TypedInterface.
func (q *sourceQueue[request]) Add(item request) {
	q.note(item, 0)
	q.PriorityQueue.Add(item)
}

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *sourceQueue[request]) AddAfter(item request, after time.Duration) {
	q.note(item, after)
	q.PriorityQueue.AddAfter(item, after)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *sourceQueue[request]) AddRateLimited(item request) {
	q.note(item, 0)
	q.PriorityQueue.AddRateLimited(item)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (q *sourceQueue[request]) AddWithOpts(o priorityqueue.AddOpts, items ...request) {
	for _, item := range items {
		q.note(item, o.After)
	}
	q.PriorityQueue.AddWithOpts(o, items...)
}
