// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// The types of condition that every kind has. Together they follow kstatus, so that kubectl wait, Argo CD and
// Flux read them without further configuration.
const (
	// ConditionReady is True when the object does what its current spec asks for, and False otherwise. It is
	// there as soon as the object has been looked at.
	ConditionReady = "Ready"

	// ConditionReconciling is True while there is work going on for the current spec. It is an abnormal
	// condition: there is none, or it is False, once the work is done.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when no progress is to be expected before somebody changes something. Its
	// message says what. It is an abnormal condition: there is none, or it is False, as long as all is well.
	ConditionStalled = "Stalled"
)
