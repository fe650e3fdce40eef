// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// stagedManager collects what is added to a manager while a kind is set up, so that all of it starts when it is complete. A
// running manager starts what is added to it at once, and a builder adds its controller before the controller has a watch. The
// controller would not wait for its caches, and would miss changes between its first list and its last watch.
type stagedManager struct {
	ctrl.Manager

	runnables []manager.Runnable
}

// Add implements ctrl.Manager.
func (m *stagedManager) Add(runnable manager.Runnable) error {
	m.runnables = append(m.runnables, runnable)
	return nil
}
