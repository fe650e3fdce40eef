// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package podcluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/flow"
)

// mostSought is how many surplus pods a pass reads from the server.
const mostSought = 100

// findSurplus adds pods that are too many, and that findPods does not find because they have lost their labels. A pod that is still
// wanted is found when a pod of its name is created; these are found only here. Pods that have just vanished are read, and after a
// change of the spec also those that the status still counts. Nearly always there are none, and nothing is read.
func (r *Reconciler) findSurplus(ctx context.Context, s *scope) error {
	names := map[string]bool{}
	for _, name := range r.vanishedPods.of(s.cluster.UID) {
		if ordinal, ours := ordinalOf(s.cluster.Name, name); ours && ordinal >= s.world.replicas {
			names[name] = true
		}
	}
	if s.pass.AsksServer() {
		// Another writer can set the status to any number.
		end := min(int(s.cluster.Status.Replicas), s.world.replicas+len(s.world.members)+mostSought)
		for ordinal := s.world.replicas; ordinal < end; ordinal++ {
			names[podName(s.cluster.Name, ordinal)] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	for _, m := range s.world.members {
		if names[m.pod.Name] {
			delete(names, m.pod.Name)
			r.vanishedPods.forget(s.cluster.UID, m.pod.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names))[:min(len(names), mostSought)] {
		if err := r.seek(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// seek adds the surplus pod with a name, if the server has one and it is ours.
func (r *Reconciler) seek(ctx context.Context, s *scope, name string) error {
	pod := &corev1.Pod{}
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: name}, pod); err != nil {
		if apierrors.IsNotFound(err) {
			r.vanishedPods.forget(s.cluster.UID, name)
			return nil
		}
		return fmt.Errorf("reading pod %s: %w", name, err)
	}
	if metav1.GetControllerOf(pod) == nil && pod.DeletionTimestamp.IsZero() && wasOurs(s.cluster, pod) {
		adopted, gone, err := claim(ctx, r, s, pod, identity(s.cluster))
		if gone || flow.Reason(err) == flow.ReasonContested {
			s.contest(err)
			return nil
		}
		if err != nil {
			return err
		}
		pod = adopted
	}
	if !metav1.IsControlledBy(pod, s.cluster) {
		r.vanishedPods.forget(s.cluster.UID, name)
		return nil
	}
	s.addMember(pod)
	// No cache reports its end, so it is read again until it is gone.
	r.vanishedPods.add(pod, s.world.now)
	if err := s.pass.WatchEnd(ctx, pod); err != nil {
		s.contest(flow.WaitingFor(youngest, "ScalingDown", "surplus pod %s is terminating: %v", name, err))
	}
	return nil
}
