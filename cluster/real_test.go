// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/opdock/opdock/cluster"
	"github.com/opdock/opdock/internal/testenv"
)

// These tests show that the package and the real control plane mean the same by what they say to each
// other. Everything else is tried with a fake, which is faster and can misbehave on demand.

// needsControlPlane skips rather than compiling Kubernetes in the middle of a test run.
func needsControlPlane(t *testing.T) {
	t.Helper()
	testenv.ControlPlane(t)
	t.Setenv("OPDOCK_HOME", t.TempDir())
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func startReal(t *testing.T, o cluster.Options) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	return c
}

func TestRealStateSurvives(t *testing.T) {
	needsControlPlane(t)
	var steps []string
	c := startReal(t, cluster.Options{Name: "dev", Detach: true, Progress: func(p cluster.Progress) { steps = append(steps, p.Step) }})
	for _, want := range []string{"state", "etcd", "apiserver", "controllers", "nodes"} {
		if !slices.Contains(steps, want) {
			t.Errorf("step %s is missing in %q", want, steps)
		}
	}
	var locked *cluster.StartError
	if _, err := cluster.Start(t.Context(), cluster.Options{Name: "dev"}); !errors.As(err, &locked) || locked.Reason != cluster.ReasonLocked {
		t.Errorf("the second of the same name: %v", err)
	}
	server := c.Config().Host
	keep := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "keep"}}
	if _, err := clientFor(t, c.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), keep, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	isThere := func(c *cluster.Cluster) {
		t.Helper()
		if c.Config().Host != server {
			t.Errorf("it moved from %s to %s", server, c.Config().Host)
		}
		if _, err := clientFor(t, c.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), "keep", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}

	opened, err := cluster.Open("dev")
	if err != nil {
		t.Fatal(err)
	}
	isThere(opened)
	if err := opened.Stop(); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if status, err := cluster.Find("dev"); err != nil || status.State != cluster.Stopped {
		t.Errorf("after Stop: %+v, %v", status, err)
	}

	again := startReal(t, cluster.Options{Name: "dev"})
	isThere(again)
	status, err := cluster.Find("dev")
	if err != nil || status.State != cluster.Alive || status.Server != server || status.Version != cluster.KubernetesVersion {
		t.Errorf("while it runs: %+v, %v", status, err)
	}
	if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-again.Done()
	if status, err := cluster.Find("dev"); err != nil || status.State != cluster.Dead {
		t.Errorf("after SIGKILL: %+v, %v", status, err)
	}

	last := startReal(t, cluster.Options{Name: "dev"})
	isThere(last)
	if err := last.Stop(); err != nil {
		t.Error(err)
	}
	if err := cluster.Delete("dev"); err != nil {
		t.Error(err)
	}
	if status, err := cluster.Find("dev"); err != nil || status.State != cluster.NeverStarted {
		t.Errorf("after Delete: %+v, %v", status, err)
	}
}

func TestRealIdentity(t *testing.T) {
	needsControlPlane(t)
	c := startReal(t, cluster.Options{})
	identity, err := c.As("system:serviceaccount:shop:cart")
	if err != nil {
		t.Fatal(err)
	}
	text, err := identity.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, config)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user := review.Status.UserInfo
	slices.Sort(user.Groups)
	want := []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:shop"}
	if user.Username != "system:serviceaccount:shop:cart" || !slices.Equal(user.Groups, want) {
		t.Errorf("the API server sees %+v", user)
	}
	if _, err := client.CoreV1().Secrets("shop").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without any role it may list secrets: %v", err)
	}
}

func TestRealCancel(t *testing.T) {
	needsControlPlane(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := cluster.Start(ctx, cluster.Options{Name: "dev", Progress: func(p cluster.Progress) {
		if p.Step == "etcd" {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error is %v", err)
	}
	if status, err := cluster.Find("dev"); err != nil || status.State == cluster.Alive || status.State == cluster.Dead {
		t.Errorf("after that: %+v, %v", status, err)
	}
}
