// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flow contains the code that the controllers of all kinds share.
//
// Each kind defines a Kind: accessors for the parts that all kinds have, and a function that reconciles one
// object. That function is a list of phases (Run), which change the cluster through their Pass and return an error
// as the outcome: nil if the object matches its spec, Waiting, Stalled, Hold, or any other error for a failure
// that is retried.
//
// The Reconciler does the rest, in the same way for all kinds: it turns that error into conditions, events,
// metrics and the result of the reconcile, and writes the status if it differs.
//
//	            ┌────────────── Reconciler ──────────────┐
//	event ──▶   │ get ─▶ Kind.Reconcile(pass, object)    │ ──▶ status, event, metric, result
//	            │          phase ─▶ phase ─▶ phase       │
//	            │            │        │                  │
//	            └────────────┼────────┼──────────────────┘
//	                       Pass.Apply, Pass.Delete ──▶ children
//
// This package guarantees five properties for all kinds:
//
//   - A reconcile that finds nothing to change writes nothing, and drift of children is corrected (drift.go
//     detects it, with ownership.go, shape.go and order.go; children.go, takeover.go and replace.go correct it).
//   - Writers that have a right to a field keep it (rights.go). If a writer reverts each correction, corrections
//     become less frequent (contests.go).
//   - An object that the custom resource does not control is never changed, unless it may be adopted (adopt.go).
//   - A reconcile does not act on state that its own writes have made obsolete (ownwrites.go).
//   - A watch triggers the reconcile of an owner that waits (bystanders.go for objects that it does not own).
package flow
