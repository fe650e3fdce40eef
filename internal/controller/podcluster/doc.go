// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podcluster makes the pods NAME-0, NAME-1 and so on of a PodCluster, without a controller of Kubernetes in
// between.
//
// A pass looks at all pods and revisions of a PodCluster, lets the planner say what is to be done (plan.go, a function
// of what was seen and nothing else), and does it (execute.go).
//
// # Revisions
//
// Each template that a PodCluster has had is kept in a ControllerRevision, and each pod has the hash of the one that it
// was made from in a label. What currentRevision, updateRevision and partition mean is what they mean for a
// StatefulSet: a pod below the partition stays as it is, and is made from the current revision if it has to be made anew.
// If somebody deletes the current revision, its template is lost, and the update revision takes its place.
//
// # Updates
//
// Pods follow a changed template from the highest number down, and no more than maxUnavailable pods are unavailable
// because of it. A pod that is not ready anyway is updated at once: nobody loses anything by that, and it is
// how a PodCluster with a broken template recovers when the template is corrected.
//
// If two revisions differ in nothing but images of containers, the images of the pod are changed and it keeps its node
// and its address. The pod counts as unavailable until its kubelet has started the containers anew.
//
// # Replacement
//
// A pod that has ended (failed, or was evicted) is replaced, but not before it is ten seconds old: one that is turned away
// by its node again and again must not become a hot loop. A pod that has not been ready for progressDeadlineSeconds is
// replaced as well; the deadline is its pace.
//
// # Lost nodes
//
// A pod on a node that does not answer stays Terminating, and nobody knows whether it still runs. As long as it might, no
// other pod gets its name: two members with the same identity are worse than one that is missing. There are two
// cases in which the pod is known to have stopped: its Node is deleted, or has the taint
// node.kubernetes.io/out-of-service. In both, Kubernetes' own pod garbage collector removes the pod, which is watched; so
// this package never deletes by force, and needs no right to read nodes. Meanwhile the PodCluster is Stalled and says so.
//
// # Whose pods
//
// Pods without a controller that have the labels and a name of the PodCluster are adopted, and pods that lose the labels
// are released, as a ReplicaSet does. Any other pod that has one of the names is left alone: the PodCluster is Stalled
// until it is gone.
//
// # Drift
//
// Labels, annotations and images of a running pod that others have changed are set back; that counts as an update in
// place. A pod in which something else was changed, such as its tolerations, is replaced: the server does not let it be
// set back. Both keep to maxUnavailable. What admission changed when a pod was created stays: the server's records of who
// owns which field tell the two apart.
//
// What the pods may do is decided by their template alone; if a namespace forbids it, the condition says so.
package podcluster
