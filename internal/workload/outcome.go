// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

// Outcome returns the outcome of a reconcile from the rollout of its Deployment: nil if it is
// complete. The trouble comes from one of its pods, or is nil.
func Outcome(deployment *appsv1.Deployment, trouble *health.Trouble) error {
	switch rollout := health.RolloutOf(deployment, trouble); {
	case rollout.Complete():
		return nil
	case rollout.Stuck:
		return flow.Stalled(rollout.Reason, Advise(errors.New(rollout.Message), &deployment.Spec.Template.Spec))
	default:
		return flow.Waiting(rollout.Reason, "%s", rollout.Message)
	}
}
