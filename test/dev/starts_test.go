// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opdock/opdock/cluster/clustertest"
	"github.com/opdock/opdock/internal/freeport"
	"github.com/opdock/opdock/internal/testenv"
)

// TestPlainProject has an operator that knows nothing of controller-runtime, and has no roles.
func TestPlainProject(t *testing.T) {
	p := newProject(t, "plain")
	p.start(t)
	if round := p.good(t, "build", "apply", "restart"); round.State != "reconciling" {
		t.Errorf("it is %s", round.State)
	}
	if said := p.said.String(); !strings.Contains(said, "runs as an administrator") {
		t.Errorf("it was not said: %s", said)
	}
	server := p.server(t)
	kind := schema.GroupVersionKind{Group: "plain.example.com", Version: "v1", Kind: "Buoy"}
	colour := func(want string) {
		t.Helper()
		testenv.Eventually(t, "the buoy is "+want, func(ctx context.Context) error {
			buoy, err := get(ctx, server, kind, "sample")
			if err == nil && buoy.GetAnnotations()["plain.example.com/colour"] != want {
				return fmt.Errorf("it has %v", buoy.GetAnnotations())
			}
			return err
		})
	}
	if _, err := get(t.Context(), server, kind, "sample"); !apierrors.IsNotFound(err) {
		t.Errorf("samples were not requested: %v", err)
	}
	buoy := &unstructured.Unstructured{}
	buoy.SetGroupVersionKind(kind)
	buoy.SetNamespace("default")
	buoy.SetName("sample")
	if err := server.Create(t.Context(), buoy); err != nil {
		t.Fatal(err)
	}
	colour("red")
	p.edit(t, "main.go", `"red"`, `"green"`)
	p.good(t, "build", "restart")
	colour("green")
	if code := p.stop(t, os.Interrupt); code != 0 {
		t.Errorf("exit code %d", code)
	}
	noProcess(t, p)
}

// TestPortInUse names who has the port that the operator's webhooks need. The operator is also told to elect a leader,
// which those do that have no flag against it.
func TestPortInUse(t *testing.T) {
	p := newProject(t, "ship")
	number, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(number)
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p.start(t, "--", "--leader-elect", "--webhook-port="+port)
	problem := p.bad(t, "restart")
	if !strings.Contains(problem.Text, "port "+port+" is in use by") {
		t.Errorf("got %q", problem.Text)
	}
	if runtime.GOOS == "linux" && !strings.Contains(problem.Text, "pid "+strconv.Itoa(os.Getpid())) {
		t.Errorf("it does not say who has it: %q", problem.Text)
	}
	// Once it is free, any change starts the operator.
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	p.edit(t, controllerFile, "lets ships greet", "lets all ships greet")
	if round := p.next(t); round.State != "reconciling" {
		t.Errorf("got %+v", round)
	}
	server := p.server(t)
	lease := func() *unstructured.Unstructured {
		t.Helper()
		found, err := get(t.Context(), server, schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "ship")
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := lease()
	p.edit(t, controllerFile, `"ahoy, "`, `"hello, "`)
	p.good(t, "build", "restart")
	if lease().GetUID() == before.GetUID() {
		t.Error("the lease of the process from before was not released, so that the next has waited for it")
	}
}

// TestOtherCluster runs on a cluster that opdock dev has not started and treats as a shared one. The manifests are as
// kubebuilder v2 wrote them: the operator has the account that every namespace has.
func TestOtherCluster(t *testing.T) {
	p := newProject(t, "ship")
	p.edit(t, "config/manager/manager.yaml", "      serviceAccountName: captain\n", "")
	p.edit(t, "config/rbac/kustomization.yaml", " service_account.yaml,", "")
	p.edit(t, "config/rbac/role_binding.yaml", "- kind: ServiceAccount\n  name: captain\n", "- kind: ServiceAccount\n  name: default\n")
	other := clustertest.Shared(t)
	p.kubeconfig = other.Kubeconfig()
	p.start(t, "--kubeconfig", other.Kubeconfig(), "--samples")
	p.good(t, "generate", "apply", "build", "apply", "restart", "samples")
	server := p.server(t)
	greets(t, server, "sample", "ahoy, world")
	if said := p.said.String(); !strings.Contains(said, "system:serviceaccount:ship-system:default") {
		t.Errorf("it was not said: %s", said)
	}
	// It cannot call this machine, so that a webhook would refuse everything.
	hooks := &unstructured.UnstructuredList{}
	hooks.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfigurationList"})
	if err := server.List(t.Context(), hooks); err != nil {
		t.Fatal(err)
	}
	if len(hooks.Items) > 0 {
		t.Errorf("it has webhooks: %v", hooks.Items)
	}
	if code := p.stop(t, os.Interrupt); code != 0 {
		t.Errorf("exit code %d", code)
	}
	noProcess(t, p)
	greeted, err := get(t.Context(), server, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "sample")
	if err != nil {
		t.Fatalf("the cluster has not survived: %v", err)
	}
	if err := server.Delete(t.Context(), greeted); err != nil {
		t.Error(err)
	}
}
