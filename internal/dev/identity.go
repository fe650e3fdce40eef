// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// releaseLease releases the lease of an operator that has ended without releasing it. Otherwise the next process
// would wait until it expires. On Opdock's clusters, no other process uses the lease.
func (s *Session) releaseLease(ctx context.Context, ended *process) {
	if ended == nil || !s.Cluster.CallsBack {
		return
	}
	namespace, name, found := strings.Cut(ended.ready.wantedLease(), "/")
	if !found {
		return
	}
	lease := &unstructured.Unstructured{}
	lease.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	lease.SetNamespace(namespace)
	lease.SetName(name)
	// If it stays, the operator only waits for longer.
	_ = s.applier.remove(ctx, []*unstructured.Unstructured{lease})
}

// mergeEnvironments merges environments: the user's variables override those of the manifests, and forced
// settings override both.
func mergeEnvironments(user, manifests, forced []string) []string {
	set := map[string]bool{}
	for _, setting := range user {
		name, _, _ := strings.Cut(setting, "=")
		set[name] = true
	}
	merged := slices.Clone(user)
	for _, setting := range manifests {
		if name, _, _ := strings.Cut(setting, "="); !set[name] {
			merged = append(merged, setting)
		}
	}
	return append(merged, forced...)
}
