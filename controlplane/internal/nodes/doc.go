// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes simulates the kubelets of all nodes: it keeps nodes Ready and reports about pods
// what a kubelet would, so that Deployments become available and Jobs complete although nothing runs.
//
// Two parts share the work:
//
//   - Nodes belong to kwok, used as a library. The stages in stages/ say when a node's status
//     changes, kwok plays them and renews the node leases.
//   - Pods belong to this package. observe is a pure function from a pod, its behaviour and the time
//     to the status a kubelet would report next and the moment to look again. podKubelet calls it
//     for every change and writes the result.
//
// Pods are not written as kwok stages because stages cannot say what the behaviours promise: the
// text of a stage's event is fixed, a stage's delay starts over with every change of the pod, and a
// delayed stage is still played when its pod no longer matches it. The conditions of a pod come from
// the kubelet's own code instead, so they cannot drift from upstream.
//
// The annotation opdock.dev/behaviour makes a pod misbehave; docs/behaviours.md describes it.
package nodes
