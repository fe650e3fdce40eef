// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/apply"
	"github.com/opdock/opdock/internal/crdspec"
)

// The parts of a session's inventory. Each is pruned separately.
const (
	partRights      = "rights" // the namespace, the service account, roles and bindings
	partDefinitions = "crds"
	partWebhooks    = "webhooks"
	// partBelongings are created and never pruned: they may hold what the operator has written.
	partBelongings = "belongings"
)

// fieldOwner is the manager of everything that a session applies.
const fieldOwner = apply.DevManager

// servedTimeout is how long a CRD may take to be served.
const servedTimeout = 30 * time.Second

// applier applies objects with package apply, in the name of a session.
type applier struct {
	engine   *apply.Server
	server   client.Client
	requests rest.Interface
	set      apply.Set
	options  apply.Options     // what all parts have in common
	tried    map[string]digest // CRDs that were tried by a dry run, by kind, namespace and name
	sampled  map[string]digest // the samples as they were applied last
	// remembered are the belongings that the inventory lists.
	remembered []apply.Member
	told       sync.Map // notes about objects, which are valid for each round
}

// once returns a function that prints each text once.
func (a *applier) once(say func(string)) func(string) {
	return func(text string) {
		if _, before := a.told.LoadOrStore(text, true); !before {
			say(text)
		}
	}
}

// newApplier returns an applier for a cluster. Inventories are in the given namespace.
func newApplier(config *rest.Config, set apply.Set) (*applier, error) {
	engine, err := apply.Connect(config)
	if err != nil {
		return nil, err
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return &applier{
		engine: engine, server: engine.Client(), requests: found.RESTClient(), set: set,
		options: apply.Options{Manager: fieldOwner}, tried: map[string]digest{}, sampled: map[string]digest{},
	}, nil
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

// applyPart applies these objects, and prunes other objects that the part had before, in this session or an earlier
// one. Shared objects are not pruned.
func (a *applier) applyPart(ctx context.Context, part string, objects []*unstructured.Unstructured, shared map[apply.ID]string) (changed []*unstructured.Unstructured, pruned int, err error) {
	options, set := a.options, a.set
	set.Part = part
	options.Set, options.Shared = &set, shared
	outcomes, err := a.engine.Apply(ctx, objects, options)
	for _, one := range outcomes {
		switch one.Action {
		case apply.Created, apply.Configured:
			changed = append(changed, one.Live)
		case apply.Pruned:
			pruned++
		}
	}
	return changed, pruned, a.asRefused(err)
}

// asRefused names the object that the API server does not take.
func (a *applier) asRefused(err error) error {
	var (
		refused *apply.ObjectError
		unknown *apply.UnknownKindsError
	)
	switch {
	case errors.As(err, &refused):
		return &refusedError{object: refused.Object, err: refused.Err}
	case errors.As(err, &unknown):
		return a.unknown(unknown.Objects[0])
	default:
		return err
	}
}

// unknown is an object whose kind the cluster does not have. It may have another version of the kind: Kubernetes and operators
// remove old ones.
func (a *applier) unknown(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	text := fmt.Sprintf("the cluster does not have %s", kind)
	if mapping, err := a.server.RESTMapper().RESTMapping(kind.GroupKind()); err == nil {
		text += ", but has version " + mapping.GroupVersionKind.Version + ": change the apiVersion"
	}
	return &refusedError{object: object, err: errors.New(text)}
}

// apply applies samples that have changed since the last apply, and returns them. They are not in the inventory: a
// user who removes a sample from the project may want to keep the object.
func (a *applier) apply(ctx context.Context, objects []*unstructured.Unstructured) (changed []*unstructured.Unstructured, err error) {
	return a.applyUnless(ctx, a.sampled, objects, a.options)
}

// try finds the CRDs that the API server would refuse, by a dry run.
func (a *applier) try(ctx context.Context, definitions []*unstructured.Unstructured) error {
	options := a.options
	options.DryRun = true
	_, err := a.applyUnless(ctx, a.tried, definitions, options)
	return err
}

// applyUnless applies the objects that differ from known, and adds them to known.
func (a *applier) applyUnless(ctx context.Context, known map[string]digest, objects []*unstructured.Unstructured, options apply.Options) (changed []*unstructured.Unstructured, err error) {
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
		if _, err := a.engine.Apply(ctx, []*unstructured.Unstructured{object}, options); err != nil {
			missing := (*apply.MissingNamespaceError)(nil)
			if errors.As(err, &missing) { // in the words of the API server
				err = &refusedError{object: object, err: apierrors.NewNotFound(corev1.Resource("namespaces"), missing.Namespaces[0])}
			}
			return changed, a.asRefused(err)
		}
		known[key] = sum
		changed = append(changed, object)
	}
	return changed, nil
}

// others returns the objects that were deployed to the cluster, and by which command: a session does not delete them.
func (a *applier) others(ctx context.Context) (map[apply.ID]string, error) {
	inventories, err := a.engine.Inventories(ctx, a.set.Namespace)
	if err != nil {
		return nil, err
	}
	shared := map[apply.ID]string{}
	for _, one := range inventories {
		if one.Verb == a.set.Verb {
			continue
		}
		for _, member := range one.Members() {
			shared[member.ID] = fmt.Sprintf("opdock %s of %s", one.Verb, one.Project)
		}
	}
	return shared, nil
}

// clear deletes webhook configurations of earlier sessions, under any name, because no process serves them.
func (a *applier) clear(ctx context.Context) error {
	inventories, err := a.engine.Inventories(ctx, a.set.Namespace)
	if err != nil {
		return err
	}
	for _, one := range inventories {
		left := one.Parts[partWebhooks]
		if one.Verb != a.set.Verb || len(left) == 0 {
			continue
		}
		options := a.options
		options.Set = &one.Set
		if _, err := a.engine.Delete(ctx, apply.Objects(left), options); err != nil {
			return err
		}
	}
	return nil
}

// hold records on the cluster that a session uses the applied objects, or with an empty text that none does.
func (a *applier) hold(ctx context.Context, session string) error {
	err := a.engine.Update(ctx, &a.set, func(i *apply.Inventory) { i.Session = session })
	if apierrors.IsForbidden(err) {
		return nil // then there is no inventory either, which is reported at the next apply
	}
	return err
}

// remember lists objects as a part of what the session uses.
func (a *applier) remember(ctx context.Context, part string, objects []*unstructured.Unstructured) error {
	members := apply.Members(objects)
	if slices.Equal(members, a.remembered) {
		return nil
	}
	err := a.engine.Update(ctx, &a.set, func(i *apply.Inventory) { i.Parts[part] = members })
	if apierrors.IsForbidden(err) {
		return nil // which is said when something is applied
	}
	a.remembered = members
	return err
}

// removePart deletes objects of a part, and takes them off the inventory.
func (a *applier) removePart(ctx context.Context, objects []*unstructured.Unstructured) error {
	options := a.options
	options.Set = &a.set
	_, err := a.engine.Delete(ctx, objects, options)
	return err
}

// awaitServed waits until objects of the definitions can be created and watched.
func (a *applier) awaitServed(ctx context.Context, definitions []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	if err := a.engine.AwaitEstablished(ctx, definitions); err != nil {
		a.forget(definitions) // retry after another wait
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

// warm prepares the API server for watches of a kind. The server asks the first watch to retry after a second, and
// for that second the operator would not reconcile.
func (a *applier) warm(ctx context.Context, definition *unstructured.Unstructured) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	kind := crdspec.Of(definition)
	for _, version := range kind.ServedVersions() {
		path := "/apis/" + version.String() + "/" + kind.Plural
		// Without it the operator only waits longer, so errors do not matter.
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
				return nil, a.unknown(object)
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

// remove deletes objects that may not exist.
func (a *applier) remove(ctx context.Context, objects []*unstructured.Unstructured) error {
	var problems []error
	for _, object := range objects {
		err := a.server.Delete(ctx, object.DeepCopy())
		if err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) { // of a kind that the cluster does not have, there is none
			problems = append(problems, fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	return errors.Join(problems...)
}

// forget makes the next apply treat the samples as new.
func (a *applier) forget(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		delete(a.sampled, keyOf(object))
	}
}
