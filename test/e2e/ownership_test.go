// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opdock/opdock/internal/testenv"
)

// gone is an error unless looking for an object said that there is none.
func gone(err error) error {
	switch {
	case err == nil:
		return errors.New("it is still there")
	case apierrors.IsNotFound(err):
		return nil
	default:
		return err
	}
}

func (w *world) createConfigMap(t *testing.T, c *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	return must(w.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), c, metav1.CreateOptions{}))(t)
}

func (w *world) configMap(t *testing.T, name string) (*corev1.ConfigMap, error) {
	t.Helper()
	return w.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), name, metav1.GetOptions{})
}

func (w *world) deleteConfigMap(t *testing.T, name string, policy metav1.DeletionPropagation) {
	t.Helper()
	try(t, w.CoreV1().ConfigMaps(w.namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// ownedBy is a reference that makes a foreground deletion of the owner wait for what it owns.
func ownedBy(owner *corev1.ConfigMap) metav1.OwnerReference {
	block := true
	return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &block}
}

func TestGarbageCollectionInTheBackground(t *testing.T) {
	w := newWorld(t)
	owner := w.createConfigMap(t, configMap("owner"))
	child := w.createConfigMap(t, configMap("child", ownedBy(owner)))
	w.createConfigMap(t, configMap("grandchild", ownedBy(child)))
	w.deleteConfigMap(t, "owner", metav1.DeletePropagationBackground)
	if _, err := w.configMap(t, "owner"); !apierrors.IsNotFound(err) {
		t.Errorf("the owner waits for what it owns: %v", err)
	}
	for _, name := range []string{"child", "grandchild"} {
		testenv.Eventually(t, name+" is collected", func() error {
			_, err := w.configMap(t, name)
			return gone(err)
		})
	}
}

func TestGarbageCollectionInTheForeground(t *testing.T) {
	w := newWorld(t)
	owner := w.createConfigMap(t, configMap("owner"))
	child := configMap("child", ownedBy(owner))
	child.Finalizers = []string{"test.opdock.dev/hold"}
	w.createConfigMap(t, child)
	w.deleteConfigMap(t, "owner", metav1.DeletePropagationForeground)
	testenv.Eventually(t, "the child is being deleted", func() error {
		child, err := w.configMap(t, "child")
		if err == nil && child.DeletionTimestamp == nil {
			err = errors.New("it is not")
		}
		return err
	})
	held, err := w.configMap(t, "owner")
	if err != nil || held.DeletionTimestamp == nil || len(held.Finalizers) != 1 || held.Finalizers[0] != metav1.FinalizerDeleteDependents {
		t.Errorf("the owner does not wait for its child: %+v, %v", held, err)
	}
	release := []byte(`{"metadata":{"finalizers":null}}`)
	must(w.CoreV1().ConfigMaps(w.namespace).Patch(t.Context(), "child", types.MergePatchType, release, metav1.PatchOptions{}))(t)
	for _, name := range []string{"child", "owner"} {
		testenv.Eventually(t, name+" is gone", func() error {
			_, err := w.configMap(t, name)
			return gone(err)
		})
	}
}

func TestOrphansStay(t *testing.T) {
	w := newWorld(t)
	owner := w.createConfigMap(t, configMap("owner"))
	w.createConfigMap(t, configMap("child", ownedBy(owner)))
	w.deleteConfigMap(t, "owner", metav1.DeletePropagationOrphan)
	testenv.Eventually(t, "the owner is gone", func() error {
		_, err := w.configMap(t, "owner")
		return gone(err)
	})
	child, err := w.configMap(t, "child")
	if err != nil || len(child.OwnerReferences) != 0 || child.DeletionTimestamp != nil {
		t.Errorf("the orphan is %+v, %v", child, err)
	}
}

func TestDeploymentTakesItsPodsAlong(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 2))
	try(t, w.AppsV1().Deployments(w.namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	testenv.Eventually(t, "ReplicaSets and pods are collected", func() error {
		sets, err := w.AppsV1().ReplicaSets(w.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		return errors.Join(
			expect("number of ReplicaSets", len(sets.Items), 0),
			expect("number of pods", len(w.pods(t, "web")), 0),
		)
	})
}

// An owner whose kind was unknown a moment ago is every operator's case. The collector looks for new kinds
// every thirty seconds.
func TestCustomResourceTakesItsObjectsAlong(t *testing.T) {
	w := newWorld(t)
	boats := w.installCRD(t)
	owner := must(boats.Create(t.Context(), w.boat("owner", 1), metav1.CreateOptions{}))(t)
	w.createConfigMap(t, configMap("child", metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}))
	try(t, boats.Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	testenv.Eventually(t, "the child is collected", func() error {
		_, err := w.configMap(t, "child")
		return gone(err)
	})
}

func TestNamespaceGoesWithEverythingInIt(t *testing.T) {
	w := newWorld(t)
	w.startDeployment(t, deployment("web", 2))
	boats := w.installCRD(t)
	must(boats.Create(t.Context(), w.boat("wreck", 1), metav1.CreateOptions{}))(t)
	owner := w.createConfigMap(t, configMap("owner"))
	w.createConfigMap(t, configMap("child", ownedBy(owner)))
	must(w.CoreV1().Services(w.namespace).Create(t.Context(), service("web"), metav1.CreateOptions{}))(t)

	try(t, w.CoreV1().Namespaces().Delete(t.Context(), w.namespace, metav1.DeleteOptions{}))
	_, err := w.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), configMap("late"), metav1.CreateOptions{})
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) && !apierrors.IsNotFound(err) {
		t.Errorf("something is created in a namespace that goes: %v", err)
	}
	testenv.Eventually(t, "the namespace is gone", func() error {
		namespace, err := w.CoreV1().Namespaces().Get(t.Context(), w.namespace, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("its conditions are %+v", namespace.Status.Conditions)
		}
		return gone(err)
	})
	if pods := w.pods(t, "web"); len(pods) != 0 {
		t.Errorf("%d pods outlive their namespace", len(pods))
	}
	if left := must(boats.List(t.Context(), metav1.ListOptions{}))(t); len(left.Items) != 0 {
		t.Errorf("%d custom resources outlive their namespace", len(left.Items))
	}
}
