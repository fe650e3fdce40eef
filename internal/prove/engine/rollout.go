// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opdock/opdock/internal/prove/world"
)

// rolloutRestart is the variant of a plan that does what `kubectl rollout restart` does: it adds an annotation to the pod template, and
// the controller of the workload replaces the pods. An operator that removes the annotation ends the rollout before it is complete.
const rolloutRestart = "rollout-restart"

// restartedAt is where kubectl notes the time of a restart.
var restartedAt = []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}

// canRestart reports whether `kubectl rollout restart` works with an object.
func canRestart(key world.Key) bool {
	return key.Group == "apps" && slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, key.Kind)
}

// restartRollout restarts the pods of a workload, and takes the annotation away in the end.
func restartRollout(r *run, p *Plan, target *unstructured.Unstructured) *disturbance {
	const now = "2026-01-01T00:00:00Z"
	return &disturbance{
		act: func(ctx context.Context) error {
			return r.change(ctx, target, func(live *unstructured.Unstructured) { set(live.Object, restartedAt, now) })
		},
		meanwhile: func(ctx context.Context) ([]*Observation, error) {
			live, err := r.live(ctx, target)
			if apierrors.IsNotFound(err) {
				return nil, nil // the comparison with an undisturbed run shows that
			}
			if err != nil {
				return nil, err
			}
			if value, _, _ := unstructured.NestedString(live.Object, restartedAt...); value == now {
				return nil, nil
			}
			return []*Observation{{
				Step: p.Step - 1, Verdict: "end-state", Severity: medium, Object: p.Object, Fields: []string{strings.Join(restartedAt, ".")},
				Title: "The operator reverts a rollout restart of " + lowerKind(target.GetKind()),
				Want:  "the annotation stays in the pod template, or some pods are not replaced", Got: "the annotation is gone",
			}}, nil
		},
		heal: func(ctx context.Context) error {
			return client.IgnoreNotFound(r.change(ctx, target, func(live *unstructured.Unstructured) { set(live.Object, restartedAt, nil) }))
		},
	}
}
