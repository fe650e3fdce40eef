// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// held holds back what is added to a manager until it is complete. A manager that runs starts whatever is added at once, and
// a builder adds its controller before the controller has a single watch. It would work without waiting for its caches, and
// what changed between its first look and its last watch would be taken for the state that it has seen.
type held struct {
	ctrl.Manager

	runnables []manager.Runnable
}

// Add implements ctrl.Manager.
func (h *held) Add(runnable manager.Runnable) error {
	h.runnables = append(h.runnables, runnable)
	return nil
}

// release adds everything to the manager, in the same order.
func (h *held) release() error {
	for _, runnable := range h.runnables {
		if err := h.Manager.Add(runnable); err != nil {
			return fmt.Errorf("adding %T: %w", runnable, err)
		}
	}
	h.runnables = nil
	return nil
}
