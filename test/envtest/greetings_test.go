// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/opdock/opdock/internal/testenv"
)

func greet(t *testing.T, namespace, text string) *Greeting {
	t.Helper()
	greeting := &Greeting{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"}, Spec: GreetingSpec{Text: text}}
	// The webhook is served by the manager, which has only just been started.
	testenv.Eventually(t, "the webhook answers", func() error {
		err := k8s.Create(t.Context(), greeting)
		if err != nil && !apierrors.IsInternalError(err) {
			t.Fatal(err)
		}
		return err
	})
	return greeting
}

func awaitText(t *testing.T, greeting *Greeting, text string) {
	t.Helper()
	testenv.Eventually(t, "the ConfigMap says "+text, func() error {
		var found corev1.ConfigMap
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(greeting), &found); err != nil {
			return err
		}
		if found.Data["text"] != text || !metav1.IsControlledBy(&found, greeting) {
			return fmt.Errorf("it is %+v", found)
		}
		return nil
	})
}

func TestReconciler(t *testing.T) {
	greeting := greet(t, newNamespace(t), "good morning")
	awaitText(t, greeting, "good morning")
	testenv.Eventually(t, "its status is written", func() error {
		if err := k8s.Get(t.Context(), client.ObjectKeyFromObject(greeting), greeting); err != nil {
			return err
		}
		if greeting.Status.ObservedGeneration != 1 {
			return fmt.Errorf("it is %+v", greeting.Status)
		}
		return nil
	})
	greeting.Spec.Text = "good night"
	if err := k8s.Update(t.Context(), greeting); err != nil {
		t.Fatal(err)
	}
	awaitText(t, greeting, "good night")
	if err := k8s.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: greeting.Namespace, Name: greeting.Name}}); err != nil {
		t.Fatal(err)
	}
	awaitText(t, greeting, "good night") // again
}

func TestWebhook(t *testing.T) {
	greeting := greet(t, newNamespace(t), "good morning")
	greeting.Spec.Text = "hey!"
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":"hey!"}}`))
	if err := k8s.Patch(t.Context(), greeting, patch); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "do not shout") {
		t.Errorf("the webhook says %v", err)
	}
	patch = client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"text":""}}`))
	if err := k8s.Patch(t.Context(), greeting, patch); !apierrors.IsInvalid(err) {
		t.Errorf("the schema says %v", err)
	}
}

func TestKubectl(t *testing.T) {
	namespace := newNamespace(t)
	admin, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := admin.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"version --client":                                       "Client Version",
		"get namespaces --output=name":                           "namespace/" + namespace,
		"explain greeting.spec --api-version=test.opdock.dev/v1": "text",
	} {
		stdout, stderr, err := kubectl.Run(strings.Fields(command)...)
		if err != nil {
			message, _ := io.ReadAll(stderr)
			t.Errorf("kubectl %s: %v\n%s", command, err, message)
			continue
		}
		if output, _ := io.ReadAll(stdout); !strings.Contains(string(output), want) {
			t.Errorf("kubectl %s: %q is not in\n%s", command, want, output)
		}
	}
}

// TestUserWithoutRights shows that RBAC is on, as in any envtest.
func TestUserWithoutRights(t *testing.T) {
	nobody, err := environment.AddUser(envtest.User{Name: "nobody"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := client.New(nobody.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.List(t.Context(), &corev1.NamespaceList{}); !apierrors.IsForbidden(err) {
		t.Errorf("without any rights one gets %v", err)
	}
}
