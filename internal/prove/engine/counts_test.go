// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/prove/world"
)

func happened(how, kind, uid, version, owner string) world.Change {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetName("victory")
	object.SetUID(types.UID(uid))
	object.SetResourceVersion(version)
	if owner != "" {
		yes := true
		object.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Frigate", Name: "victory", UID: types.UID(owner), Controller: &yes}})
	}
	return world.Change{Type: how, Object: object, Key: world.Key{Kind: kind, Name: "victory"}}
}

// TestCountsOfWhatComesTooLate is about objects that are created for a custom resource that is gone.
func TestCountsOfWhatComesTooLate(t *testing.T) {
	const name = "Deployment victory"
	for about, test := range map[string]struct {
		changes          []world.Change
		created, deleted int
	}{
		"created and deleted": {[]world.Change{
			happened("ADDED", "Deployment", "d", "5", "f"), happened("MODIFIED", "Deployment", "d", "6", "f"), happened("DELETED", "Deployment", "d", "7", "f"),
		}, 1, 1},
		"created again after its owner was gone": {[]world.Change{
			happened("DELETED", "Frigate", "f", "10", ""), happened("DELETED", "Deployment", "d", "12", "f"),
			happened("ADDED", "Deployment", "e", "14", "f"), happened("DELETED", "Deployment", "e", "16", "f"),
		}, 0, 1},
		"the watches tell it in another order": {[]world.Change{
			happened("ADDED", "Deployment", "e", "14", "f"), happened("DELETED", "Deployment", "e", "16", "f"), happened("DELETED", "Frigate", "f", "10", ""),
		}, 0, 0},
		"created again while its owner was there": {[]world.Change{
			happened("DELETED", "Deployment", "d", "12", "f"), happened("ADDED", "Deployment", "e", "14", "f"),
			happened("DELETED", "Frigate", "f", "15", ""), happened("DELETED", "Deployment", "e", "16", "f"),
		}, 1, 2},
		"it stays although its owner is gone": {[]world.Change{
			happened("DELETED", "Frigate", "f", "10", ""), happened("ADDED", "Deployment", "e", "14", "f"),
		}, 1, 0},
	} {
		t.Run(about, func(t *testing.T) {
			if got := countsOf(test.changes)[name]; got.created[1] != test.created || got.deleted[1] != test.deleted {
				t.Errorf("created %d and deleted %d times, want %d and %d", got.created[1], got.deleted[1], test.created, test.deleted)
			}
		})
	}
}

// TestCountsOfRollouts says that a Deployment that is created again may have a ReplicaSet again, but one that stays may not.
func TestCountsOfRollouts(t *testing.T) {
	set := func(uid, owner string) world.Change {
		change := happened("ADDED", "ReplicaSet", uid, "5", owner)
		change.Key.Resource, change.Key.Name = "replicasets", "victory-"+uid
		change.Object.SetLabels(map[string]string{"pod-template-hash": uid})
		return change
	}
	const name = "ReplicaSet victory-*"
	if got := countsOf([]world.Change{set("a", "f"), set("b", "g")})[name].created[1]; got != 1 {
		t.Errorf("of two Deployments: %d, want 1", got)
	}
	if got := countsOf([]world.Change{set("a", "f"), set("b", "f")})[name].created[1]; got != 2 {
		t.Errorf("of one Deployment: %d, want 2", got)
	}
	late := []world.Change{
		happened("DELETED", "Frigate", "f", "1", ""), happened("ADDED", "Deployment", "e", "4", "f"), set("a", "e"), happened("DELETED", "Deployment", "e", "6", "f"),
	}
	if got := countsOf(late)[name].created[1]; got != 0 {
		t.Errorf("of a Deployment that came too late: %d, want 0", got)
	}
}
