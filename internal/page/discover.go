// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/tree"
)

// Discovery keeps a tree of all custom resources of a cluster and of what belongs to them, whatever kinds come and go.
// It is for operators that nothing is known about.
type Discovery struct {
	Tree    *tree.Model
	Changes *Changes
	// Problem is told what could not be watched.
	Problem func(error)
}

// definitionKind is what tells about kinds.
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
		default: // it will be looked at anyway
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, now any) { notify(now) }, DeleteFunc: notify,
	})
	if err != nil {
		return fmt.Errorf("watching kinds: %w", err)
	}
	go func() {
		// It returns nil when the context ends, and has nothing else to say.
		_ = definitions.Start(ctx)
	}()
	if !definitions.WaitForCacheSync(ctx) {
		return nil // the context has ended
	}
	return d.follow(ctx, config, definitions, changed)
}

// follow watches the objects of the kinds there are, and begins anew when there are others.
func (d Discovery) follow(ctx context.Context, config *rest.Config, definitions client.Reader, changed <-chan struct{}) error {
	var (
		watched []schema.GroupVersionKind
		current latest
	)
	defer current.end()
	for {
		from, kinds, err := sourcesOf(ctx, definitions)
		if err != nil {
			return err
		}
		if !slices.Equal(kinds, watched) {
			watched = kinds
			from.Changed = d.Changes.Observe
			current.begin(ctx, func(ctx context.Context) {
				err := onceServed(ctx, func(ctx context.Context) error { return tree.Watch(ctx, config, from, d.Tree) })
				// Kinds that are gone before they were ever listed are no problem.
				if err != nil && ctx.Err() == nil {
					d.Problem(err)
				}
			})
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// servedInterval is how often a kind is looked for that a definition promises.
const servedInterval = 100 * time.Millisecond

// onceServed watches, and does so again if a kind was not found: a definition is established a moment before the server
// tells that it has the kind. If the definition goes instead, the context ends.
func onceServed(ctx context.Context, watch func(context.Context) error) error {
	var failed error
	err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(ctx context.Context) (bool, error) {
		failed = watch(ctx)
		return !meta.IsNoMatchError(failed), nil
	})
	return cmp.Or(failed, err)
}

// latest runs one function at a time: the next ends the one before.
type latest struct{ cancel context.CancelFunc }

func (l *latest) begin(ctx context.Context, run func(context.Context)) {
	l.end()
	ctx, l.cancel = context.WithCancel(ctx)
	go run(ctx)
}

func (l *latest) end() {
	if l.cancel != nil {
		l.cancel()
	}
}

// sourcesOf are the kinds that can be used now, and what objects of such kinds own as a rule.
func sourcesOf(ctx context.Context, definitions client.Reader) (tree.Sources, []schema.GroupVersionKind, error) {
	from := tree.Sources{Scheme: clientgoscheme.Scheme, Fleet: map[schema.GroupVersionKind]tree.Columns{}, Children: commonChildren(), Foreign: true}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(definitionKind)
	if err := definitions.List(ctx, list); err != nil {
		return from, nil, fmt.Errorf("listing kinds: %w", err)
	}
	var kinds []schema.GroupVersionKind
	for i := range list.Items {
		definition := &list.Items[i]
		kind, usable := kindOf(definition)
		if !usable {
			continue
		}
		columns, err := tree.ColumnsOf(definition, kind.Version)
		if err != nil {
			columns = nil // a kind whose columns cannot be read is shown without
		}
		from.Fleet[kind] = columns
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return cmp.Compare(a.String(), b.String()) })
	return from, kinds, nil
}

// kindOf is the kind that a definition defines, in the version in which its objects are stored, and whether it is served.
func kindOf(definition *unstructured.Unstructured) (schema.GroupVersionKind, bool) {
	var kind schema.GroupVersionKind
	kind.Group, _, _ = unstructured.NestedString(definition.Object, "spec", "group")
	kind.Kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		served, _, _ := unstructured.NestedBool(version, "served")
		stored, _, _ := unstructured.NestedBool(version, "storage")
		if served && (stored || kind.Version == "") {
			kind.Version, _, _ = unstructured.NestedString(version, "name")
		}
	}
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == string(metav1.ConditionTrue) {
			return kind, kind.Version != "" && definition.GetDeletionTimestamp().IsZero()
		}
	}
	return kind, false
}

// commonChildren are what operators make. Of Secrets only the metadata is ever asked for.
func commonChildren() []client.Object {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return []client.Object{
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ReplicaSet{}, &corev1.Pod{}, &corev1.Service{}, &corev1.ConfigMap{}, secret,
		&corev1.ServiceAccount{}, &corev1.PersistentVolumeClaim{}, &batchv1.Job{}, &batchv1.CronJob{}, &networkingv1.Ingress{}, &networkingv1.NetworkPolicy{},
		&autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	}
}
