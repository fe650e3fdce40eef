// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/controller"
	"github.com/opdock/opdock/internal/fleettest"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/manager"
	"github.com/opdock/opdock/internal/ship"
)

// TestInstallUpgradeUninstall does what docs/deploy.md says.
func TestInstallUpgradeUninstall(t *testing.T) {
	c := fleettest.Client(t)
	manifests := rendered(t, "config/default")
	// Without its namespace, not even the server can try the rest.
	apply(t, c, manifests[:1])
	apply(t, c, manifests, client.DryRunAll)
	applyAll(t, c, manifests)
	deployment := &appsv1.Deployment{}
	deployment.Namespace, deployment.Name = systemNamespace, "opdock-manager"
	before := fleettest.Await(t, c, deployment, available)

	stop := fleettest.Run(t, asManager(t), manager.Options{})
	namespace := clustertest.Namespace(t)
	objects := applySamples(t, c, namespace)
	awaitReady(t, c, objects)
	uids := uidsOf(t, c, append(slices.Clone(objects), definitions(manifests)...))

	upgrade, err := ship.Installer("../../config/default", ship.Image{Tag: "next"})
	if err != nil {
		t.Fatal(err)
	}
	apply(t, c, decode(t, upgrade))
	fleettest.Await(t, c, deployment, func(deployment *appsv1.Deployment) string {
		if deployment.Generation == before.Generation {
			return "the Deployment has not changed"
		}
		return available(deployment)
	})
	awaitReady(t, c, objects)
	for path, uid := range uidsOf(t, c, append(slices.Clone(objects), definitions(manifests)...)) {
		if uids[path] != uid {
			t.Errorf("%s has not survived the upgrade", path)
		}
	}

	// First the objects, while the manager can still clean up after them.
	for _, kind := range controller.Kinds {
		err := c.DeleteAllOf(t.Context(), kind.New(), client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationForeground))
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range objects {
		fleettest.AwaitGone(t, c, object)
	}
	for _, children := range []client.ObjectList{&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.PodList{}, &corev1.ConfigMapList{}} {
		if err := c.List(t.Context(), children, client.InNamespace(namespace), client.HasLabels{flow.LabelManagedBy}); err != nil {
			t.Fatal(err)
		}
		if left := meta.LenList(children); left > 0 {
			t.Errorf("%d are left in the %T", left, children)
		}
	}
	stop()
	remove(t, c, manifests)
}

// remove does what kubectl delete does, and waits until nothing of it is left.
func remove(t *testing.T, c client.Client, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, object := range slices.Backward(objects) {
		if err := c.Delete(t.Context(), object.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	for _, object := range objects {
		fleettest.AwaitGone(t, c, object.DeepCopy())
	}
}

func available(deployment *appsv1.Deployment) string {
	if deployment.Status.ObservedGeneration != deployment.Generation || deployment.Status.UpdatedReplicas != 1 || deployment.Status.AvailableReplicas != 1 {
		return "the manager is not available"
	}
	return ""
}

func definitions(manifests []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(manifests), func(object *unstructured.Unstructured) bool {
		return object.GetKind() != "CustomResourceDefinition"
	})
}

func uidsOf(t *testing.T, c client.Client, objects []*unstructured.Unstructured) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	for _, object := range objects {
		live := object.DeepCopy()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
			t.Fatal(err)
		}
		uids[object.GetKind()+" "+object.GetName()] = live.GetUID()
	}
	return uids
}
