// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy brings the manifests of a project to a server and takes them away again: in an order in which each object
// finds what it needs, by server-side apply, and waiting until what was applied works or what was deleted is gone.
package deploy

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/project"
)

// FieldOwner is the field manager of everything that is applied here.
const FieldOwner = "opdock"

// Server is a server that objects are applied to.
type Server struct {
	client    client.Client
	discovery discovery.DiscoveryInterface
}

// Connect makes a Server. It does not find out whether anybody answers.
func Connect(config *rest.Config) (*Server, error) {
	config = rest.CopyConfig(config)
	// The server's priority and fairness limits requests. A limit here would refuse the last ones before a deadline, with
	// an error that hides what was waited for.
	config.QPS = -1
	objects, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &Server{client: objects, discovery: kinds}, nil
}

// Action is what happened to an object, or would happen in a dry run.
type Action string

const (
	// Created means that it did not exist.
	Created Action = "created"
	// Configured means that it existed and was not as the manifest says.
	Configured Action = "configured"
	// Unchanged means that it was as the manifest says.
	Unchanged Action = "unchanged"
	// Deleted means that it is gone, or on its way.
	Deleted Action = "deleted"
	// Absent means that there was nothing to delete.
	Absent Action = "absent"
)

// Outcome is what happened to one object.
type Outcome struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Action     Action `json:"action"`
}

func outcome(object *unstructured.Unstructured, action Action) Outcome {
	return Outcome{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Action: action,
	}
}

// title is what messages call an object.
func title(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

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
	case project.IsCRD(object):
		return stageDefinitions
	case kind.Group == "rbac.authorization.k8s.io" || kind.Group == "" && kind.Kind == "ServiceAccount":
		return stageRights
	case kind.Group == "apps" || kind.Group == "batch" || kind.Group == "" && kind.Kind == "Pod":
		return stageWorkloads
	case project.IsWebhookConfiguration(object):
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

// orderOfDeletion is the reverse, but for the definitions: they go while the operator is still there, which has to finish
// what the objects of its kinds were made into.
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
