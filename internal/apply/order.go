// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The stages of a deployment. Each depends on the ones before it.
const (
	stageNamespaces = iota
	stageDefinitions
	stageRights
	stageObjects
	stageWorkloads
	stageWebhooks // last: the server calls them as soon as they exist
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

// Order returns the objects in the order in which they are applied. Objects of one stage keep their
// order.
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
			// After webhooks, which would block changes once no process serves them.
			return -stageWebhooks*2 + 1
		}
		return -stage * 2
	}
	ordered := slices.Clone(objects)
	slices.Reverse(ordered)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int { return cmp.Compare(place(a), place(b)) })
	return ordered
}
