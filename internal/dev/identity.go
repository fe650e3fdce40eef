// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opdock/opdock/internal/project"
)

// releaseLease gives back the lease of an operator that has ended without doing so itself: the next would wait until it
// expires. It belongs to a process that is gone, and on a cluster of opdock's nobody else asks for it.
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

// environmentIn is what the manifests put into the environment of the operator's container, as far as it means something
// on this machine: values, and what a pod is told about itself.
func environmentIn(manifests []*unstructured.Unstructured, identity *project.Identity) []string {
	workload := project.Workload(manifests)
	if workload == nil {
		return nil
	}
	containers := project.Containers(workload)
	if len(containers) == 0 {
		return nil
	}
	chosen := containers[0]
	if i := slices.IndexFunc(containers, func(one map[string]any) bool { return one["name"] == "manager" }); i >= 0 {
		chosen = containers[i]
	}
	list, _ := chosen["env"].([]any)
	var env []string
	for _, one := range list {
		variable, _ := one.(map[string]any)
		name, _ := variable["name"].(string)
		if value, ok := variable["value"].(string); ok {
			// A variable that refers to another is replaced by the kubelet, and nobody does that here.
			if !strings.Contains(value, "$(") {
				env = append(env, name+"="+value)
			}
			continue
		}
		field, _, _ := unstructured.NestedString(variable, "valueFrom", "fieldRef", "fieldPath")
		switch field {
		case "metadata.namespace":
			env = append(env, name+"="+namespaceOf(workload, identity))
		case "metadata.name":
			env = append(env, name+"="+workload.GetName())
		case "spec.serviceAccountName":
			if identity != nil {
				env = append(env, name+"="+identity.ServiceAccount)
			}
		}
	}
	return env
}

func namespaceOf(workload *unstructured.Unstructured, identity *project.Identity) string {
	switch {
	case workload.GetNamespace() != "":
		return workload.GetNamespace()
	case identity != nil:
		return identity.Namespace
	default:
		return metav1.NamespaceDefault
	}
}

// mergeEnvironments lets what the user has set win over what the manifests say, and both over nothing. The forced
// settings win over all.
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
