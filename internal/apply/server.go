// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/crdspec"
)

// Field managers.
const (
	// ProjectManager is kubectl's own name. install and deploy apply the same manifests as "make deploy" with kubectl.
	// With another name, kubectl would report every later change as a conflict.
	ProjectManager = "kubectl"
	// DevManager is the manager of opdock dev, whose objects differ from the manifests: webhooks have addresses on
	// this machine.
	DevManager = "opdock-dev"
	// FleetManager is the manager of the fleet's CRDs, and SamplesManager the one of its samples.
	FleetManager   = "opdock"
	SamplesManager = "opdock-run"
)

// Requests per second, and in a burst, the same as kubectl's. Waiting uses watches, so this is enough for hundreds
// of objects, and does not overload shared clusters.
const (
	requestsPerSecond = 50
	requestBurst      = 300
)

// Server is a server that objects are applied to.
type Server struct {
	client    client.WithWatch
	discovery discovery.DiscoveryInterface

	mu   sync.Mutex
	seen map[ID]version // the objects as they were applied last by this process
}

// version is the digest of an applied object, and the server's version afterwards.
type version struct {
	applied         [sha256.Size]byte
	resourceVersion string
}

// Connect creates a Server. It sends no request.
func Connect(config *rest.Config) (*Server, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = requestsPerSecond, requestBurst
	objects, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return New(objects, kinds), nil
}

// New returns a Server for a client and a discovery client of the same server.
func New(objects client.WithWatch, kinds discovery.DiscoveryInterface) *Server {
	return &Server{client: objects, discovery: kinds, seen: map[ID]version{}}
}

// Client returns the client that the Server uses.
func (s *Server) Client() client.Client { return s.client }

// Action is what happened to an object, or would happen in a dry run.
type Action string

const (
	// Created means that it did not exist.
	Created Action = "created"
	// Configured means that it existed and differed from the manifest.
	Configured Action = "configured"
	// Unchanged means that it matched the manifest.
	Unchanged Action = "unchanged"
	// Pruned means that it is no longer part of the set and was deleted.
	Pruned Action = "pruned"
	// Kept means that it was not changed, because others use it or have changed it.
	Kept Action = "kept"
	// Deleted means that it is deleted or being deleted.
	Deleted Action = "deleted"
	// Absent means that there was nothing to delete.
	Absent Action = "absent"
)

// Actions are all actions, in the order in which a summary names them.
var Actions = []Action{Created, Configured, Unchanged, Pruned, Kept, Deleted, Absent}

// Outcome is what happened to one object.
type Outcome struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Action     Action `json:"action"`
	// Live is the object as the server has it after it was applied; nil if it was not.
	Live *unstructured.Unstructured `json:"-"`
}

func outcome(object *unstructured.Unstructured, action Action) Outcome {
	return Outcome{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), Action: action,
	}
}

// ID identifies an object on a server.
type ID struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// IDOf returns the identity of an object.
func IDOf(object *unstructured.Unstructured) ID {
	kind := object.GroupVersionKind()
	return ID{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// String is what messages call an object.
func (i ID) String() string {
	if i.Namespace == "" {
		return i.Kind + " " + i.Name
	}
	return i.Kind + " " + i.Namespace + "/" + i.Name
}

// title is what messages call an object.
func title(object *unstructured.Unstructured) string { return IDOf(object).String() }

func isCRD(object *unstructured.Unstructured) bool { return IDOf(object).isCRD() }

func (i ID) isCRD() bool {
	return i.Group == "apiextensions.k8s.io" && i.Kind == "CustomResourceDefinition"
}

func isWebhookConfiguration(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind()
	return kind.Group == "admissionregistration.k8s.io" &&
		(kind.Kind == "MutatingWebhookConfiguration" || kind.Kind == "ValidatingWebhookConfiguration")
}

// definedKind is the kind that a CRD defines.
func definedKind(definition *unstructured.Unstructured) schema.GroupKind {
	return crdspec.Of(definition).GroupKind()
}

// empty returns an object of the same kind, to read into.
func empty(object *unstructured.Unstructured) *unstructured.Unstructured {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(object.GroupVersionKind())
	return live
}
