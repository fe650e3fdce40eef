// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// EnsureNamespace creates a namespace that is not there, on a cluster that belongs to the caller.
func EnsureNamespace(ctx context.Context, objects client.Client, name string) error {
	if name == "" {
		return nil
	}
	namespace := &corev1.Namespace{}
	namespace.SetName(name)
	if err := objects.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// MissingNamespace is the namespace that an API server misses; empty if the answer is about something else.
func MissingNamespace(err error) string {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) || status.Status().Details == nil || status.Status().Details.Kind != "namespaces" {
		return ""
	}
	return status.Status().Details.Name
}
