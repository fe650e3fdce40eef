// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/crdspec"
)

// Discovery maintains a tree of all custom resources of a cluster and the objects that belong to them, while kinds
// are added and removed. Use it for operators whose kinds are not known.
type Discovery struct {
	Model *Model
	// Changed, if set, is called as described for Sources.
	Changed func(kind schema.GroupVersionKind, old, now client.Object)
	// Problem is called with errors of watches, from several goroutines.
	Problem func(error)
}

// definitionKind is the kind that defines other kinds.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// Run watches until the context ends.
func (d Discovery) Run(ctx context.Context, config *rest.Config) error {
	definitions, err := cache.New(config, cache.Options{DefaultTransform: cache.TransformStripManagedFields()})
	if err != nil {
		return fmt.Errorf("watching kinds: %w", err)
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitionKind)
	informer, err := definitions.GetInformer(ctx, definition, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching kinds: %w", err)
	}
	changed := make(chan struct{}, 1)
	notify := func(any) {
		select {
		case changed <- struct{}{}:
		default: // an update is already due
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, now any) { notify(now) }, DeleteFunc: notify,
	})
	if err != nil {
		return fmt.Errorf("watching kinds: %w", err)
	}
	go func() {
		// It always returns nil, when the context ends.
		_ = definitions.Start(ctx)
	}()
	if !definitions.WaitForCacheSync(ctx) {
		return nil // the context has ended
	}
	return d.follow(ctx, config, definitions, changed)
}

// follow watches the common kinds permanently, and each kind of custom resource while it is defined.
func (d Discovery) follow(ctx context.Context, config *rest.Config, definitions client.Reader, changed <-chan struct{}) error {
	watch := func(ctx context.Context, from Sources) {
		from.Scheme, from.Foreign, from.Changed = clientgoscheme.Scheme, true, d.Changed
		err := onceServed(ctx, func(ctx context.Context) error { return Follow(ctx, config, from, d.Model, func() {}) })
		// It is not an error if a kind disappears before it was listed.
		if err != nil && ctx.Err() == nil {
			d.Problem(err)
		}
	}
	common := begin(ctx, func(ctx context.Context) { watch(ctx, Sources{Children: commonChildren()}) })
	defer common.end()
	kinds := kindWatches{model: d.Model, watch: func(ctx context.Context, k definedKind) {
		watch(ctx, Sources{Fleet: map[schema.GroupVersionKind]Columns{k.kind: k.columns}, WithoutEvents: true})
	}}
	defer kinds.end()
	for {
		defined, err := definedKinds(ctx, definitions)
		if err != nil {
			return err
		}
		kinds.update(ctx, defined)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// definedKind is a kind that a CustomResourceDefinition defines.
type definedKind struct {
	kind    schema.GroupVersionKind
	columns Columns
	// definition and generation identify a version of a definition.
	definition types.UID
	generation int64
	// ending means that the definition and its objects are being deleted.
	ending bool
}

// kindWatches watches each kind separately, so adding or removing a kind does not disturb the others.
type kindWatches struct {
	model *Model
	// watch watches a kind until the context ends. It does not change the model after it has returned.
	watch   func(context.Context, definedKind)
	running map[schema.GroupKind]kindWatch
}

type kindWatch struct {
	kind definedKind
	task *task
}

// update watches exactly the kinds that are now defined. A watch ends before the next watch of the same kind begins.
// The objects of kinds that are no longer defined are removed.
func (w *kindWatches) update(ctx context.Context, defined []definedKind) {
	if w.running == nil {
		w.running = map[schema.GroupKind]kindWatch{}
	}
	wanted := map[schema.GroupKind]definedKind{}
	for _, k := range defined {
		wanted[k.kind.GroupKind()] = k
	}
	for name, running := range w.running {
		now, still := wanted[name]
		if still && now.definition == running.kind.definition && (now.ending || now.generation == running.kind.generation) {
			delete(wanted, name) // the running watch still reports the deletion of its objects
			continue
		}
		running.task.end()
		delete(w.running, name)
		if !still || now.definition != running.kind.definition {
			w.model.RemoveKind(name, nil)
		}
	}
	for name, k := range wanted {
		if !k.ending {
			w.running[name] = kindWatch{k, begin(ctx, func(ctx context.Context) { w.watch(ctx, k) })}
		}
	}
}

func (w *kindWatches) end() {
	for _, running := range w.running {
		running.task.end()
	}
}

// task is a function that runs until it is stopped.
type task struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

func begin(ctx context.Context, run func(context.Context)) *task {
	ctx, cancel := context.WithCancel(ctx)
	t := &task{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		run(ctx)
	}()
	return t
}

// end stops the function and returns when it has ended.
func (t *task) end() {
	t.cancel()
	<-t.ended
}

// servedInterval is how often a watch is retried while the server does not serve the kind yet.
const servedInterval = 100 * time.Millisecond

// onceServed retries a watch while the kind is not found. The API server establishes a definition a moment before
// discovery includes the kind. The context ends if the definition is deleted.
func onceServed(ctx context.Context, watch func(context.Context) error) error {
	var failed error
	err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(ctx context.Context) (bool, error) {
		failed = watch(ctx)
		return !meta.IsNoMatchError(failed), nil
	})
	return cmp.Or(failed, err)
}

// definedKinds returns the kinds that are served, and those that are being deleted.
func definedKinds(ctx context.Context, definitions client.Reader) ([]definedKind, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(definitionKind)
	if err := definitions.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing kinds: %w", err)
	}
	var kinds []definedKind
	for i := range list.Items {
		definition := &list.Items[i]
		kind, usable := kindOf(definition)
		if !usable {
			continue
		}
		columns, err := ColumnsOf(definition, kind.Version)
		if err != nil {
			columns = nil // show a kind without its columns if they cannot be read
		}
		kinds = append(kinds, definedKind{
			kind: kind, columns: columns, definition: definition.GetUID(), generation: definition.GetGeneration(),
			ending: !definition.GetDeletionTimestamp().IsZero(),
		})
	}
	return kinds, nil
}

// kindOf returns the kind that a definition defines and whether it can be used. It prefers the storage version to other
// served versions.
func kindOf(definition *unstructured.Unstructured) (schema.GroupVersionKind, bool) {
	spec := crdspec.Of(definition)
	kind := spec.GroupKind().WithVersion("")
	for _, version := range spec.Versions {
		if version.Served && (version.Storage || kind.Version == "") {
			kind.Version = version.Name
		}
	}
	return kind, kind.Version != "" && crdspec.IsEstablished(definition)
}

// commonChildren returns the kinds that operators usually create. For Secrets, only the metadata is read.
func commonChildren() []client.Object {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return []client.Object{
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ReplicaSet{}, &corev1.Pod{}, &corev1.Service{}, &corev1.ConfigMap{}, secret,
		&corev1.ServiceAccount{}, &corev1.PersistentVolumeClaim{}, &batchv1.Job{}, &batchv1.CronJob{}, &networkingv1.Ingress{}, &networkingv1.NetworkPolicy{},
		&autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	}
}
