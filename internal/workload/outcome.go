// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

// Outcome is the outcome of a pass whose Deployment is that far: nil if its rollout is complete. The trouble is that of one
// of its pods, or nil.
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
