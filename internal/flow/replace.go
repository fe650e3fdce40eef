// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replaceIfImmutable deletes a child if an immutable field prevents the correction and nothing is lost by it. The
// child is recreated once it is gone.
func (p *Pass) replaceIfImmutable(ctx context.Context, object client.Object, desired *desired, write repetition, cause error) error {
	if !isImmutable(cause) || !replaceable[desired.kind] {
		return Refused(cause)
	}
	return p.replace(ctx, object, desired, write, cause)
}

// stuck returns why an apply cannot correct a child, although the server would accept it. A Service that was made
// headless by hand stays headless: without an address in the configuration, the server keeps the existing one, even
// if it is None.
func stuck(object client.Object, desired *desired) error {
	service, ok := object.(*corev1.Service)
	if !ok || service.Spec.ClusterIP != corev1.ClusterIPNone || field(desired.content, "spec")["clusterIP"] == corev1.ClusterIPNone {
		return nil
	}
	return errors.New("spec.clusterIP was set to None, which cannot be undone")
}

// replace deletes a child. It is recreated once it is gone. A controller that changes each new child in the same way is a
// rival, so the write counts for contests.
func (p *Pass) replace(ctx context.Context, object client.Object, desired *desired, write repetition, cause error) error {
	replaced, err := p.mayWrite(write, cause.Error(), contestWithin)
	if err != nil {
		return err
	}
	// Nothing is deleted that could not be created again. A name that is taken is the last thing the server checks.
	if err := p.rehearse(ctx, object, desired); !apierrors.IsAlreadyExists(err) {
		return Refused(errors.Join(cause, err))
	}
	conditions := client.Preconditions{UID: ptr.To(object.GetUID())}
	if !metav1.IsControlledBy(object, p.owner) {
		conditions.ResourceVersion = ptr.To(object.GetResourceVersion()) // fails if another owner has adopted it since
	}
	options := []client.DeleteOption{conditions}
	if !p.isCached(object) {
		options = append(options, client.DisableReadYourWritesConsistency)
	}
	if err := p.client.Delete(ctx, object, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("replacing %s: %w", describe(object, desired.name), err)
	}
	replaced()
	p.contests.forgive(write.childOf, deletedChild) // the manager itself deleted the child
	p.Changed("Deleted %s to recreate it", describe(object, desired.name))
	return p.awaitGone(ctx, object, "Replacing", "%s is immutable and is recreated: %v", describe(object, desired.name), cause)
}

// rehearse asks the server, by a dry run, whether it would accept a new child if the old one did not exist.
func (p *Pass) rehearse(ctx context.Context, object client.Object, desired *desired) error {
	data, err := json.Marshal(desired.content)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", describe(object, desired.name), err)
	}
	fresh := newLike(object)
	if err := json.Unmarshal(data, fresh); err != nil {
		return fmt.Errorf("decoding %s: %w", describe(object, desired.name), err)
	}
	releaseNodePorts(fresh, object)
	return p.client.Create(ctx, fresh, client.FieldOwner(p.fieldOwner), client.DryRunAll)
}

// releaseNodePorts omits the node ports that the existing Service holds: they are free once it is gone.
func releaseNodePorts(fresh, existing client.Object) {
	service, ok := fresh.(*corev1.Service)
	if !ok {
		return
	}
	for i := range service.Spec.Ports {
		port := &service.Spec.Ports[i]
		if slices.ContainsFunc(existing.(*corev1.Service).Spec.Ports, func(held corev1.ServicePort) bool { return held.NodePort == port.NodePort }) {
			port.NodePort = 0
		}
	}
}

// replaceable are the kinds of children that hold no state and run nothing.
var replaceable = map[string]bool{
	"ConfigMap": true, "Service": true, "Ingress": true, "NetworkPolicy": true, "PodDisruptionBudget": true, "HorizontalPodAutoscaler": true,
}

// isImmutable reports whether the server refused to change an immutable field. It has no separate error code for
// that.
func isImmutable(err error) bool {
	return apierrors.IsInvalid(err) && (strings.Contains(err.Error(), "immutable") || strings.Contains(err.Error(), "may not change once set"))
}
