// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/deploy"
	"github.com/opdock/opdock/internal/project"
)

// fieldOwner is the manager of everything that a session applies.
const fieldOwner = "opdock-dev"

// servedTimeout is how long a CRD may take to be served.
const servedTimeout = 30 * time.Second

// applier applies objects, each only if it is not what was applied last.
type applier struct {
	server   client.Client
	kinds    *deploy.Server
	requests rest.Interface
	applied  map[string]digest // by kind, namespace and name
	tried    map[string]digest // the same
}

func newApplier(config *rest.Config) (*applier, error) {
	server, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	kinds, err := deploy.Connect(config)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &applier{server: server, kinds: kinds, requests: found.RESTClient(), applied: map[string]digest{}, tried: map[string]digest{}}, nil
}

func keyOf(object *unstructured.Unstructured) string {
	return object.GroupVersionKind().GroupKind().String() + " " + object.GetNamespace() + "/" + object.GetName()
}

// refusedError is an object that the API server does not take.
type refusedError struct {
	object *unstructured.Unstructured
	err    error
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s %s: %v", e.object.GetKind(), e.object.GetName(), e.err)
}

func (e *refusedError) Unwrap() error { return e.err }

// apply returns those objects that were not what was applied last.
func (a *applier) apply(ctx context.Context, objects []*unstructured.Unstructured) (changed []*unstructured.Unstructured, err error) {
	return a.applyUnless(ctx, a.applied, objects)
}

// try lets the API server say which definitions it would refuse.
func (a *applier) try(ctx context.Context, definitions []*unstructured.Unstructured) error {
	_, err := a.applyUnless(ctx, a.tried, definitions, client.DryRunAll)
	return err
}

// applyUnless applies the objects that are not in known as they are now, and keeps them there.
func (a *applier) applyUnless(ctx context.Context, known map[string]digest, objects []*unstructured.Unstructured, options ...client.ApplyOption) (changed []*unstructured.Unstructured, err error) {
	options = append(options, client.FieldOwner(fieldOwner), client.ForceOwnership)
	for _, object := range objects {
		encoded, err := object.MarshalJSON()
		if err != nil {
			return changed, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		sum := digest(sha256.Sum256(encoded))
		key := keyOf(object)
		if known[key] == sum {
			continue
		}
		if err := a.server.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), options...); err != nil {
			return changed, &refusedError{object: object, err: err}
		}
		known[key] = sum
		changed = append(changed, object)
	}
	return changed, nil
}

// awaitServed waits until objects of the definitions can be created.
func (a *applier) awaitServed(ctx context.Context, definitions []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	err := a.kinds.AwaitEstablished(ctx, definitions)
	if err != nil {
		a.forget(definitions) // another try has to wait again
		return err
	}
	for _, definition := range definitions {
		a.warm(ctx, definition)
	}
	return nil
}

const (
	warmTimeout  = 2 * time.Second
	warmInterval = 10 * time.Millisecond
)

// warm lets the API server prepare for watches of a kind. It does so with the first one, which it tells to come again
// after a second, and that would be a second in which the operator does not reconcile.
func (a *applier) warm(ctx context.Context, definition *unstructured.Unstructured) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, one := range versions {
		version, _ := one.(map[string]any)
		name, _ := version["name"].(string)
		if served, _ := version["served"].(bool); !served {
			continue
		}
		path := "/apis/" + project.GroupKindOf(definition).Group + "/" + name + "/" + plural
		// Without it the operator only waits for longer, so that errors do not matter.
		_ = wait.PollUntilContextCancel(ctx, warmInterval, true, func(ctx context.Context) (bool, error) {
			stream, err := a.requests.Get().AbsPath(path).Param("watch", "true").Param("timeoutSeconds", "1").MaxRetries(0).Stream(ctx)
			if err == nil {
				return true, stream.Close()
			}
			return !apierrors.IsTooManyRequests(err), nil
		})
	}
}

// inNamespace gives objects of namespaced kinds that name no namespace this one.
func (a *applier) inNamespace(objects []*unstructured.Unstructured, namespace string) ([]*unstructured.Unstructured, error) {
	placed := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		if object.GetNamespace() == "" {
			namespaced, err := a.server.IsObjectNamespaced(object)
			if meta.IsNoMatchError(err) {
				return nil, &refusedError{object: object, err: fmt.Errorf("the cluster does not have %s", object.GroupVersionKind())}
			}
			if err != nil {
				return nil, fmt.Errorf("looking up %s: %w", object.GroupVersionKind(), err)
			}
			if namespaced {
				object = object.DeepCopy()
				object.SetNamespace(namespace)
			}
		}
		placed = append(placed, object)
	}
	return placed, nil
}

// remove deletes objects that may be gone already.
func (a *applier) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	var problems []error
	for _, object := range objects {
		delete(a.applied, keyOf(object))
		if err := a.server.Delete(ctx, object.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			problems = append(problems, fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	return errors.Join(problems...)
}

// forget makes the next apply take the objects for new.
func (a *applier) forget(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		delete(a.applied, keyOf(object))
	}
}
