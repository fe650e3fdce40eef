// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/opdock/opdock/internal/hint"
)

// reachTimeout is how long an API server may take for its first word.
const reachTimeout = 15 * time.Second

// Reach finds out whether the API server answers and the namespace can be used.
func (t *Target) Reach(ctx context.Context) error {
	if err := t.Answers(); err != nil {
		return err
	}
	return t.ensureNamespace(ctx)
}

// Answers finds out whether the API server answers.
func (t *Target) Answers() error {
	quick := rest.CopyConfig(t.Config)
	quick.Timeout = reachTimeout
	server, err := discovery.NewDiscoveryClientForConfig(quick)
	if err != nil {
		return hint.With(fmt.Errorf("the kubeconfig cannot be used: %w", err), otherKubeconfig)
	}
	if _, err := server.ServerVersion(); err != nil {
		return hint.With(fmt.Errorf("the API server at %s is not available: %w", t.Config.Host, err),
			"check that the server is running and that the kubeconfig belongs to it")
	}
	return nil
}

func (t *Target) ensureNamespace(ctx context.Context) error {
	server, err := kubernetes.NewForConfig(t.Config)
	if err != nil {
		return err
	}
	namespace, err := server.CoreV1().Namespaces().Get(ctx, t.Namespace, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && t.Ours {
		namespace, err = server.CoreV1().Namespaces().Create(ctx,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.Namespace}}, metav1.CreateOptions{})
	}
	switch {
	case apierrors.IsNotFound(err):
		return hint.With(fmt.Errorf("namespace %q does not exist on %s", t.Namespace, t.Title),
			"create it: kubectl create namespace "+t.Namespace, "or use another namespace: --namespace")
	case err != nil:
		return fmt.Errorf("reading namespace %s: %w", t.Namespace, err)
	case namespace.Status.Phase == corev1.NamespaceTerminating:
		return hint.With(fmt.Errorf("namespace %q is being deleted", t.Namespace), "wait until it is deleted, or use another namespace: --namespace")
	}
	return nil
}
