// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/testenv"
)

var (
	binding = schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"}
	hooks   = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}
)

// there reports whether an object of the whole cluster exists.
func there(t *testing.T, server client.Client, gvk schema.GroupVersionKind, name string) bool {
	t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	err := server.Get(t.Context(), client.ObjectKey{Name: name}, o)
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// verb runs another verb of opdock on the project.
func (p *project) verb(t *testing.T, arguments ...string) (said string, code int) {
	t.Helper()
	command := exec.Command(testenv.Program(t), append(arguments, "--dir", p.dir, "--name", "ship")...)
	command.Env = append(os.Environ(), "OPDOCK_HOME="+p.home, "OPDOCK_CLUSTER=", "KUBECONFIG=/nonexistent")
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(output), command.ProcessState.ExitCode()
}

// TestMemory follows a user whose session is killed, who changes the manifests meanwhile, and deploys beside the next.
func TestMemory(t *testing.T) {
	p := newProject(t, "ship")
	p.edit(t, "config/manager/manager.yaml", "        image: controller:latest\n", "        image: controller:latest\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: login, namespace: system}\n")
	if said, code := p.up(t); code != 0 {
		t.Fatal(said)
	}
	p.start(t)
	p.good(t, "generate", "apply", "build", "apply", "restart")
	server := p.server(t)
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ship-system", Name: "ship-login"}}

	t.Run("a deleted object is restored in the next round", func(t *testing.T) {
		for _, gvk := range []schema.GroupVersionKind{binding, hooks} {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(gvk)
			o.SetName(map[bool]string{true: "ship-captain", false: "ship-validating-webhook-configuration"}[gvk == binding])
			if err := server.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Delete(t.Context(), login.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		p.edit(t, controllerFile, `"ahoy, "`, `"hello, "`)
		p.good(t, "apply", "build", "restart")
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(login), login); err != nil {
			t.Error(err)
		}
		if !there(t, server, binding, "ship-captain") || !there(t, server, hooks, "ship-validating-webhook-configuration") {
			t.Error("they are still gone")
		}
	})

	t.Run("deploy and undeploy leave a session alone", func(t *testing.T) {
		said, code := p.verb(t, "deploy", "--webhooks")
		if code != 0 || !strings.Contains(said, "opdock dev of ship (pid ") || !strings.Contains(said, "is running on cluster") {
			t.Errorf("exit code %d: %s", code, said)
		}
		works(t, server, "deployed")
		said, code = p.verb(t, "undeploy")
		if code != 0 || !strings.Contains(said, "because opdock dev of ship (pid ") {
			t.Errorf("exit code %d: %s", code, said)
		}
		works(t, server, "undeployed")
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(login), login); err != nil {
			t.Error(err)
		}
	})

	t.Run("what a killed session has left is pruned under another name", func(t *testing.T) {
		p.stop(t, os.Kill)
		if !there(t, server, hooks, "ship-validating-webhook-configuration") {
			t.Fatal("it has removed its webhooks although it was killed")
		}
		p.edit(t, "config/default/kustomization.yaml", "namePrefix: ship-", "namePrefix: boat-")
		p.start(t)
		p.good(t, "generate", "apply", "build", "restart") // the CRD is as it was
		if there(t, server, hooks, "ship-validating-webhook-configuration") || there(t, server, binding, "ship-captain") {
			t.Error("the webhooks or the binding of the session before are still there")
		}
		if !there(t, server, binding, "boat-captain") {
			t.Error("the new binding is missing")
		}
		works(t, server, "boat")
	})

	t.Run("a right that is removed between sessions is lost", func(t *testing.T) {
		p.stop(t, os.Interrupt)
		p.edit(t, "config/rbac/kustomization.yaml", ", role_binding.yaml", "")
		p.start(t)
		round := p.next(t)
		if !strings.Contains(round.Line(), "pruned") || there(t, server, binding, "boat-captain") {
			t.Errorf("the binding has survived: %s", round.Line())
		}
		p.stop(t, os.Interrupt)
		if said, code := p.verb(t, "undeploy", "--force"); code != 0 {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
}

// works makes sure that the operator reconciles and that its webhooks are called.
func works(t *testing.T, server client.Client, name string) {
	t.Helper()
	made := ship(name, map[string]any{"greeting": name})
	if err := server.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if crew, _, _ := unstructured.NestedInt64(made.Object, "spec", "crew"); crew != 3 {
		t.Errorf("the webhook that sets defaults has given it a crew of %d", crew)
	}
	greets(t, server, name, "hello, "+name)
}

// up starts the cluster of the project, which outlives sessions then.
func (p *project) up(t *testing.T) (said string, code int) {
	t.Helper()
	command := exec.Command(testenv.Program(t), "up", "--name", "ship")
	command.Env = append(os.Environ(), "OPDOCK_HOME="+p.home)
	output, err := command.CombinedOutput()
	t.Cleanup(func() {
		down := exec.Command(testenv.Program(t), "down", "--name", "ship")
		down.Env = command.Env
		if output, err := down.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, output)
		}
	})
	if err != nil {
		return string(output), 1
	}
	return string(output), 0
}
