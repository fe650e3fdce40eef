// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/flow"
)

// Apply makes a Deployment be as the configuration says, as the pass's Apply does for children of all types.
//
// The strategy Recreate takes one step more. The server refuses it as long as there are the settings of a rolling update,
// and applying does not take out what the server has filled in or somebody else has set.
func Apply(ctx context.Context, pass *flow.Pass, live *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration) error {
	if strategy := desired.Spec.Strategy; strategy != nil && ptr.Deref(strategy.Type, "") == appsv1.RecreateDeploymentStrategyType {
		var found appsv1.Deployment
		if err := pass.Find(ctx, &found, *desired.Name); err != nil {
			return err
		}
		if found.Spec.Strategy.RollingUpdate != nil {
			if err := pass.Patch(ctx, &found, `{"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}`); err != nil {
				return err
			}
		}
	}
	return pass.Apply(ctx, live, desired)
}
