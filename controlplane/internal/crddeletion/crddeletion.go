// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crddeletion makes the API server resume the deletion of a CustomResourceDefinition that it gave up.
//
// The controller in the API server that deletes the objects of a CRD fails if the storage of the kind has just been made
// ("storage is (re)initializing"), and tries again at once. If its cache has not seen by then what it wrote itself, that
// attempt ends in a conflict, which it takes for a change by another client: it waits for the event of it. There is none
// for the condition that only it writes, so the CRD stays until the next resync, five minutes later. Any other change of
// the CRD wakes it, and that is what this package makes.
package crddeletion

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Annotation counts how often the deletion was resumed.
const Annotation = "opdock.dev/deletion-resumed"

const (
	// firstPause gives the API server time to continue by itself, which it nearly always does.
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
)

// Run resumes deletions until ctx ends.
func Run(ctx context.Context, config *rest.Config) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building the client that resumes deletions of CRDs: %w", err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstPause, lastPause))
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithTransform(withoutSpec))
	crds := factory.Apiextensions().V1().CustomResourceDefinitions()
	enqueue := func(object any) {
		if crd := object.(*apiextensionsv1.CustomResourceDefinition); hasFailed(crd) {
			queue.AddRateLimited(crd.Name)
		}
	}
	_, err = crds.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	})
	if err != nil {
		return fmt.Errorf("watching CRDs: %w", err)
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer context.AfterFunc(ctx, queue.ShutDown)()
	for {
		name, ended := queue.Get()
		if ended {
			return nil
		}
		crd, err := crds.Lister().Get(name)
		if err == nil && hasFailed(crd) {
			err = resume(ctx, client, crd, queue.NumRequeues(name))
			queue.AddRateLimited(name) // to look whether that helped
		} else {
			queue.Forget(name)
		}
		if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			klog.ErrorS(err, "Resuming the deletion of a CRD", "crd", name)
		}
		queue.Done(name)
	}
}

// hasFailed reports whether the last attempt to delete the objects of a CRD failed.
func hasFailed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range crd.Status.Conditions {
		if condition.Type == apiextensionsv1.Terminating {
			return !crd.DeletionTimestamp.IsZero() && condition.Status == apiextensionsv1.ConditionTrue && condition.Reason == "InstanceDeletionFailed"
		}
	}
	return false
}

func resume(ctx context.Context, client clientset.Interface, crd *apiextensionsv1.CustomResourceDefinition, times int) error {
	patch := fmt.Appendf(nil, `{"metadata": {"uid": %q, "annotations": {%q: "%d"}}}`, crd.UID, Annotation, times)
	_, err := client.ApiextensionsV1().CustomResourceDefinitions().Patch(ctx, crd.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "opdock-controlplane"})
	return err
}

// withoutSpec drops what is not needed here, the schemas above all.
func withoutSpec(object any) (any, error) {
	if crd, ok := object.(*apiextensionsv1.CustomResourceDefinition); ok {
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{}
		crd.ManagedFields, crd.Annotations = nil, nil
	}
	return object, nil
}
