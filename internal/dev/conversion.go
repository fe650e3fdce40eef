// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clientConfig is where a CRD says who converts between its versions.
var clientConfig = []string{"spec", "conversion", "webhook", "clientConfig"}

// onThisCluster is how the definitions are applied: the cluster may call this machine to convert, or nobody does.
func (s *Session) onThisCluster(definitions []*unstructured.Unstructured) []*unstructured.Unstructured {
	local := make([]*unstructured.Unstructured, 0, len(definitions))
	for _, definition := range definitions {
		if s.Cluster.CallsBack {
			// The operator's own port is known only when it was built; until then nothing serves any other.
			port := cmp.Or(s.plan.webhookPort, s.ports.webhooks)
			local = append(local, localConversion(definition, port, s.certificates.authority))
		} else {
			local = append(local, withoutConversion(definition))
		}
	}
	return local
}

// leadHere lets conversion lead where the definitions say if it leads to a Service now, because somebody has installed or
// deployed the project. Server-side apply would leave that Service in place, and both together are refused.
func (a *applier) leadHere(ctx context.Context, definitions []*unstructured.Unstructured) error {
	for _, definition := range definitions {
		wanted, found, _ := unstructured.NestedMap(definition.Object, clientConfig...)
		if !found || wanted["url"] == nil {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(definition.GroupVersionKind())
		if err := a.server.Get(ctx, client.ObjectKeyFromObject(definition), live); err != nil {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			return fmt.Errorf("reading CRD %s: %w", definition.GetName(), err)
		}
		if _, found, _ := unstructured.NestedMap(live.Object, append(clientConfig, "service")...); !found {
			continue
		}
		wanted["service"] = nil
		change := map[string]any{}
		// There is nothing in it yet that could be in the way.
		_ = unstructured.SetNestedMap(change, wanted, clientConfig...)
		patch, err := json.Marshal(change)
		if err != nil {
			return fmt.Errorf("encoding a patch of CRD %s: %w", definition.GetName(), err)
		}
		if err := a.server.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner)); err != nil {
			return fmt.Errorf("pointing the conversion webhook of CRD %s to this machine: %w", definition.GetName(), err)
		}
	}
	return nil
}
