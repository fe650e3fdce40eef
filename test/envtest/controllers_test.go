// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/testenv"
)

// controllersRun reports whether there is a whole cluster, or an API server alone as envtest otherwise is.
func controllersRun() bool { return os.Getenv("OPDOCK_CONTROLLERS") == "1" }

// staysAsItIs watches an object for a while in which any controller would have acted on it long since.
func staysAsItIs(t *testing.T, list client.ObjectList, object client.Object) {
	t.Helper()
	seconds := int64(2)
	changes, err := k8s.Watch(t.Context(), list, &client.ListOptions{
		Namespace: object.GetNamespace(),
		Raw: &metav1.ListOptions{
			ResourceVersion: object.GetResourceVersion(),
			FieldSelector:   "metadata.name=" + object.GetName(),
			TimeoutSeconds:  &seconds,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		t.Errorf("without controllers there is a change: %+v", change)
	}
}

func TestDeployment(t *testing.T) {
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	if err := k8s.Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	if !controllersRun() {
		staysAsItIs(t, &appsv1.DeploymentList{}, deployment)
		return
	}
	testenv.Eventually(t, "it is available", func() error {
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if deployment.Status.AvailableReplicas != replicas {
			return fmt.Errorf("it is %+v", deployment.Status)
		}
		return nil
	})
	var pods corev1.PodList
	if err := k8s.List(t.Context(), &pods, client.InNamespace(deployment.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if pods.Items[i].Spec.NodeName == "" || pods.Items[i].Status.PodIP == "" {
			t.Errorf("pod %s has no node or no address: %+v", pods.Items[i].Name, pods.Items[i].Status)
		}
	}
}

func TestOwnedObjects(t *testing.T) {
	greeting := greet(t, newNamespace(t), "farewell")
	awaitText(t, greeting, "farewell")
	if err := k8s.Delete(t.Context(), greeting); err != nil {
		t.Fatal(err)
	}
	var owned corev1.ConfigMap
	err := k8s.Get(t.Context(), client.ObjectKeyFromObject(greeting), &owned)
	if !controllersRun() {
		if err != nil {
			t.Fatal(err)
		}
		staysAsItIs(t, &corev1.ConfigMapList{}, &owned)
		return
	}
	testenv.Eventually(t, "its ConfigMap is collected", func() error {
		return goneAlready(k8s.Get(t.Context(), client.ObjectKeyFromObject(greeting), &owned))
	})
}

func goneAlready(err error) error {
	if err == nil {
		return errors.New("it is still there")
	}
	return client.IgnoreNotFound(err)
}

func TestNamespace(t *testing.T) {
	greeting := greet(t, newNamespace(t), "farewell")
	awaitText(t, greeting, "farewell")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: greeting.Namespace}}
	if err := k8s.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	if !controllersRun() {
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); err != nil {
			t.Fatal(err)
		}
		staysAsItIs(t, &corev1.NamespaceList{}, namespace)
		return
	}
	testenv.Eventually(t, "the namespace is gone", func() error {
		return goneAlready(k8s.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace))
	})
	if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(greeting), greeting); !apierrors.IsNotFound(err) {
		t.Errorf("what was in it: %v", err)
	}
}
