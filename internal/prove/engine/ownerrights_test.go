// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/prove/world"
)

// TestOwnersOf names the kinds of which the operator's own objects block the deletion.
func TestOwnersOf(t *testing.T) {
	ship := frigate()
	ship.SetUID("u1")
	shipKey := world.Key{Group: "sea.example.com", Resource: "frigates", Kind: "Frigate", Namespace: "default", Name: "victory"}
	key := world.Key{Resource: "configmaps", Kind: "ConfigMap", Namespace: "default", Name: "orders"}
	for about, test := range map[string]struct {
		blocks  *bool
		written string
		want    bool
	}{
		"it blocks":             {ptr.To(true), "orders", true},
		"it does not":           {ptr.To(false), "orders", false},
		"it does not say so":    {nil, "orders", false},
		"another user wrote it": {ptr.To(true), "log", false},
		"it only labels it":     {ptr.To(true), "", false},
	} {
		orders := read(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: orders, namespace: default}}")
		orders.SetOwnerReferences([]metav1.OwnerReference{{UID: "u1", BlockOwnerDeletion: test.blocks}})
		wrote := write{Moment: Moment{Verb: "create", Resource: "configmaps", Namespace: "default", Name: test.written}, object: "ConfigMap"}
		if test.written == "" {
			wrote.Verb, wrote.Name, wrote.fields = "patch", "orders", []string{"metadata.labels.a"}
		}
		s := &stage{state: world.State{shipKey: ship, key: orders}, writes: []write{wrote}}
		if got := slices.Equal(ownersOf([]*stage{s, s}), []world.Key{shipKey}); got != test.want {
			t.Errorf("%s: got %v", about, ownersOf([]*stage{s, s}))
		}
	}
}
