// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// The types of condition that every kind has. They follow kstatus, so kubectl wait, Argo CD and Flux understand them
// without further configuration.
const (
	// ConditionReady is True when the object matches its current spec, and False otherwise. It is set by the first
	// reconcile.
	ConditionReady = "Ready"

	// ConditionReconciling is True while work on the current spec is in progress. It is an abnormal condition: it is
	// absent or False once the work is done.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when the object cannot make progress until something changes. Its message has the
	// reason. It is an abnormal condition: it is absent or False otherwise.
	ConditionStalled = "Stalled"
)
