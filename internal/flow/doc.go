// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flow is what the controllers of all kinds have in common.
//
// A kind says what it is in a Kind: how to reach the parts of its objects that every kind has, and a function
// that looks at one object and brings it one step further. That function is a list of phases (Run), which change
// the world through the Pass they are given and tell how it went with an error: nil when the object is as its spec
// says, Waiting, Stalled, Hold, or anything else for a failure that is worth another try.
//
// The Reconciler around it does the rest, in the same way for all kinds: it turns that one error into conditions,
// events, metrics and the result of the reconcile, and writes the status if it differs from what is there.
//
//	            ┌────────────── Reconciler ──────────────┐
//	event ──▶   │ get ─▶ Kind.Reconcile(pass, object)    │ ──▶ status, event, metric, result
//	            │          phase ─▶ phase ─▶ phase       │
//	            │            │        │                  │
//	            └────────────┼────────┼──────────────────┘
//	                       Pass.Apply, Pass.Delete ──▶ children
//
// Five promises are kept here, once for all kinds:
//
//   - A pass that finds everything in order writes nothing, and whatever others change in a child is corrected
//     (drift.go answers the question, with ownership.go and shape.go; children.go, takeover.go and replace.go do it).
//   - Writers that have a right to a field keep it (rights.go), and a writer that undoes each repair is not fought for
//     ever (contests.go).
//   - An object that the custom resource does not control is never changed, unless it may be adopted (adopt.go).
//   - A pass does not act on what its own writes have made obsolete (ownwrites.go).
//   - An owner that has to wait is woken by a watch (bystanders.go for objects that are not ours).
package flow
