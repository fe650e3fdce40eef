// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/testenv"
)

// The server does not record who reorders a list, so only a comparison of the items shows it.
func TestReorderedItemsAreRestored(t *testing.T) {
	for _, test := range []struct{ owner, kind, list string }{
		{"Robot", "Deployment", "spec/template/spec/initContainers"},
		{"AppService", "Deployment", "spec/template/spec/containers/0/env"},
		{"AppService", "Service", "spec/ports"},
		{"KAPP", "AppService", "spec/ports"},
	} {
		t.Run(test.owner+" "+test.kind, func(t *testing.T) {
			s := &stage{T: t, Client: fleettest.Client(t), namespace: clustertest.Namespace(t)}
			fleettest.Run(t, fleettest.Config(t), manager.Options{Namespaces: []string{s.namespace}})
			for _, owner := range owners {
				if owner.name == test.owner {
					s.create(owner.manifest)
				}
			}
			s.learn([]string{test.kind})
			child := s.children[0].DeepCopy()
			patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "move", "from": "/`+test.list+`/0", "path": "/`+test.list+`/1"}]`))
			if err := s.Patch(t.Context(), child, patch, client.FieldOwner("kubectl-edit")); err != nil {
				t.Fatal(err)
			}
			testenv.Await(t, func() string { return s.noEvent("DriftCorrected", " was reordered") })
			testenv.Await(t, func() string {
				live := s.children[0].DeepCopy()
				if err := s.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
					return err.Error()
				}
				if difference := cmp.Diff(s.essence(s.children[0]), s.essence(live)); difference != "" {
					return difference
				}
				return s.notReady()
			})
		})
	}
}
