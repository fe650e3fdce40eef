// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Source wraps a source that has no handler, or one that cannot be wrapped. Its reconciles are
// then attributed to a source that is not a watch. If its handler is wrapped by TypedHandler,
// which has more details, Source changes nothing.
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
	// Controllers always pass priority queues to their sources.
	if priority, ok := queue.(priorityqueue.PriorityQueue[request]); ok {
		queue = &priorityQueue[request]{PriorityQueue: priority, trigger: trigger{controller: s.controller, ofSource: true}}
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
