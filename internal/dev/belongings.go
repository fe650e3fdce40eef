// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/apply"
)

// belongingsIn are objects beside its rights that an operator finds on its cluster in production: ConfigMaps and Secrets of its
// namespace, such as its settings, or a Secret that it fills with certificates.
func belongingsIn(all []*unstructured.Unstructured, namespace string) (belongings []*unstructured.Unstructured) {
	for _, object := range all {
		kind := object.GroupVersionKind().GroupKind()
		if kind.Group == "" && (kind.Kind == "ConfigMap" || kind.Kind == "Secret") && object.GetNamespace() == namespace {
			belongings = append(belongings, object)
		}
	}
	return belongings
}

// applyBelongings creates these objects on Opdock's clusters, and lists them in the inventory: while the session runs, opdock
// undeploy does not remove them, even if the project was deployed beside it.
func (s *Session) applyBelongings(ctx context.Context) error {
	identity := s.manifests.identity
	if identity == nil || !s.Cluster.CallsBack {
		return nil
	}
	belongings := belongingsIn(s.withIssued(), identity.Namespace)
	if err := s.applier.remember(ctx, partBelongings, belongings); err != nil {
		return err
	}
	return s.create(ctx, belongings)
}

// create creates belongings, and a Pod to stand in for the operator's own. What is there already stays as it is: the operator may
// have written it.
func (s *Session) create(ctx context.Context, belongings []*unstructured.Unstructured) error {
	for _, object := range belongings {
		err := s.applier.server.Create(ctx, object.DeepCopy(), client.FieldOwner(fieldOwner))
		if apierrors.IsAlreadyExists(err) {
			err = s.renew(ctx, object)
		}
		if err != nil {
			return &refusedError{object: object, err: apply.WithPlaceholders(object, err)}
		}
	}
	c, found := containerIn(s.manifests.all, s.manifests.identity)
	if !found || !c.readsOwnName() && s.manifests.hostname == "" {
		return nil
	}
	pod := c.standIn()
	if err := s.createPod(ctx, pod); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// Only operators need it that look themselves up.
		s.sayOnce(fmt.Sprintf("the stand-in for the operator's pod could not be created (%s): %v", pod.GetName(), err))
		return nil
	}
	s.standIn = pod
	return nil
}

// renew replaces the certificate of another session. All else stays.
func (s *Session) renew(ctx context.Context, object *unstructured.Unstructured) error {
	if object.GetAnnotations()[standInAnnotation] == "" {
		return nil
	}
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(object.GroupVersionKind())
	if err := s.applier.server.Get(ctx, client.ObjectKeyFromObject(object), there); err != nil {
		return client.IgnoreNotFound(err)
	}
	if there.GetAnnotations()[standInAnnotation] == "" {
		return nil
	}
	there.Object["stringData"] = object.Object["stringData"]
	return s.applier.server.Update(ctx, there, client.FieldOwner(fieldOwner))
}

// createPod waits for the account of the pod: the one called default is created by the cluster.
func (s *Session) createPod(ctx context.Context, pod *unstructured.Unstructured) error {
	var failed error
	err := wait.PollUntilContextTimeout(ctx, accountInterval, accountPatience, true, func(ctx context.Context) (bool, error) {
		failed = s.applier.server.Create(ctx, pod.DeepCopy(), client.FieldOwner(fieldOwner))
		return failed == nil || apierrors.IsAlreadyExists(failed) || !apierrors.IsForbidden(failed), nil
	})
	if apierrors.IsAlreadyExists(failed) {
		return nil
	}
	return errors.Join(failed, err)
}
