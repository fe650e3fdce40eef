// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The stages of a deployment. Each needs what those before it have made.
const (
	stageNamespaces = iota
	stageDefinitions
	stageRights
	stageObjects
	stageWorkloads
	stageWebhooks // last: as soon as a server knows them, it asks them
)

func stageOf(object *unstructured.Unstructured) int {
	kind := object.GroupVersionKind()
	switch {
	case kind.Group == "" && kind.Kind == "Namespace":
		return stageNamespaces
	case isCRD(object):
		return stageDefinitions
	case kind.Group == "rbac.authorization.k8s.io" || kind.Group == "" && kind.Kind == "ServiceAccount":
		return stageRights
	case kind.Group == "apps" || kind.Group == "batch" || kind.Group == "" && kind.Kind == "Pod":
		return stageWorkloads
	case isWebhookConfiguration(object):
		return stageWebhooks
	default:
		return stageObjects
	}
}

// Order returns the objects in the order in which they are applied. Those of one stage keep theirs.
func Order(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	ordered := slices.Clone(objects)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int { return cmp.Compare(stageOf(a), stageOf(b)) })
	return ordered
}

// orderOfDeletion is the reverse, but for the definitions: custom resources are deleted first, while the operator can still
// clean up after them.
func orderOfDeletion(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	place := func(object *unstructured.Unstructured) int {
		stage := stageOf(object)
		if stage == stageDefinitions {
			// After webhooks, which would refuse changes once nobody answers for them.
			return -stageWebhooks*2 + 1
		}
		return -stage * 2
	}
	ordered := slices.Clone(objects)
	slices.Reverse(ordered)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int { return cmp.Compare(place(a), place(b)) })
	return ordered
}
