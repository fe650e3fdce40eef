// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/prove/compare"
	"github.com/opdock/opdock/internal/prove/world"
)

// countsSince counts how often each object was created and deleted. Pods of a controller of the cluster are that one's concern.
func (r *run) countsSince(changes int) map[string]bounds {
	_, since := r.world.Changes(changes)
	return countsOf(since)
}

func countsOf(since []world.Change) map[string]bounds {
	counts := map[string]bounds{}
	late := posthumous(since)
	rollouts := map[types.UID]int{} // by the Deployment
	for i := range since {
		change := &since[i]
		name, random := compare.Name(change.Key, change.Object)
		if owner := metav1.GetControllerOfNoCopy(change.Object); owner != nil && change.Key.Resource == "replicasets" && change.Type == "ADDED" {
			if late[owner.UID] {
				continue
			}
			// Of a Deployment that was created again it is not one more.
			rollouts[owner.UID]++
			b := counts[name]
			b.created = [2]int{max(b.created[0], rollouts[owner.UID]), max(b.created[1], rollouts[owner.UID])}
			counts[name] = b
			continue
		}
		if change.Type == "MODIFIED" || random || change.Key.Resource == "pods" && ofController(change.Object) || late[change.Object.GetUID()] {
			continue
		}
		b := counts[name]
		if change.Type == "ADDED" {
			b.created[0]++
			b.created[1]++
		} else {
			b.deleted[0]++
			b.deleted[1]++
		}
		counts[name] = b
	}
	return counts
}

// posthumous are the UIDs of objects that were created when their controller was gone already, and that the garbage collector has
// deleted. No operator can avoid that: it may not have been told yet that its custom resource is gone.
func posthumous(since []world.Change) map[types.UID]bool {
	gone := map[types.UID]int64{} // the version in which an object was deleted
	for i := range since {
		if since[i].Type == "DELETED" {
			gone[since[i].Object.GetUID()] = versionOf(since[i].Object)
		}
	}
	found := map[types.UID]bool{}
	for i := range since {
		object := since[i].Object
		owner := metav1.GetControllerOfNoCopy(object)
		if since[i].Type != "ADDED" || owner == nil || gone[object.GetUID()] == 0 {
			continue
		}
		if ended := gone[owner.UID]; ended > 0 && versionOf(object) > ended {
			found[object.GetUID()] = true
		}
	}
	return found
}

// versionOf is when an object was written: versions of all objects count up together.
func versionOf(object *unstructured.Unstructured) int64 {
	version, err := strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}
