// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcluster manages the pods NAME-0, NAME-1 and so on of a PodCluster, without another controller in
// between.
//
// A reconcile reads all pods and revisions of a PodCluster, computes a plan (plan.go, a pure function of what was
// read), and carries it out (execute.go).
//
// # Revisions
//
// Each template of a PodCluster is stored in a ControllerRevision, and each pod has the hash of its revision in a
// label. currentRevision, updateRevision and partition mean the same as for a StatefulSet: a pod below the
// partition stays as it is, and is created from the current revision if it has to be recreated. If the current
// revision is deleted, its template is lost, and the update revision takes its place.
//
// # Updates
//
// Pods are updated from the highest number down, and at most maxUnavailable pods are unavailable because of it. A
// pod that is not ready is updated at once: it serves nothing, and this is how a PodCluster recovers when a broken
// template is corrected.
//
// If two revisions differ only in images of containers, the images of the running pod are changed, and it keeps
// its node and its address. The pod counts as unavailable until its kubelet has restarted the containers.
//
// # Replacement
//
// A pod that has ended (failed, or was evicted) is replaced, but not before it is ten seconds old: a pod that its
// node rejects again and again must not cause a hot loop. A pod that has not been ready for
// progressDeadlineSeconds is replaced as well; the deadline limits the rate.
//
// # Lost nodes
//
// A pod on a node that does not respond stays Terminating, and it is unknown whether it still runs. As long as it
// might, no other pod gets its name: two members with the same identity are worse than a missing one. The pod is
// known to have stopped if its Node is deleted or has the taint node.kubernetes.io/out-of-service. In both cases,
// Kubernetes' pod garbage collector removes the pod, and the watch reports it. So this package never force-deletes
// pods, and needs no permission to read nodes. Meanwhile the PodCluster is Stalled, with the reason.
//
// # Adoption
//
// Like a ReplicaSet, a PodCluster adopts pods without a controller that have its labels and one of its names. Of those with
// one of its names, it also adopts the ones that a PodCluster has created, even if a request has removed the labels. With the
// annotation opdock.dev/adopt, it also adopts pods without a controller that have one of its names and other labels.
// Adopted pods follow no revision, so they are updated like those of an old one. It does not change any other pod that
// has one of its names: the PodCluster is Stalled until that pod is gone.
//
// A pod without the label of a known revision, or whose label another writer has set, gets the label of the revision that
// it fits (follow.go, fit.go). If it fits none and the update strategy keeps it, it cannot be compared with anything, so
// the PodCluster is Stalled.
//
// # Drift
//
// Labels, annotations and images of a running pod that other writers have changed are restored, as an update in
// place. If another field was changed, such as the tolerations, the pod is replaced, because the server does not
// allow the correction. Both respect maxUnavailable. If another controller changes each new pod in the same way, the
// PodCluster is Stalled, and pods are replaced less and less often. Changes by admission when a pod was created stay:
// managed fields distinguish them from drift.
//
// The template alone decides what the pods may do. If a namespace forbids it, the condition contains the reason.
package podcluster
