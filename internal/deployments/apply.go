// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/flow"
)

// Apply makes a Deployment be as the configuration says, as the pass's Apply does for children of all types.
//
// The strategy Recreate may take one step more. The server refuses it as long as there are the settings of a rolling update,
// and applying takes out only those that are ours, and not what somebody else has set. The step is not taken before it is
// needed, because it makes a version of the Deployment of its own, which others would look at in between.
func Apply(ctx context.Context, pass *flow.Pass, live *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration) error {
	err := pass.Apply(ctx, live, desired)
	strategy := desired.Spec.Strategy
	if !apierrors.IsInvalid(err) || strategy == nil || ptr.Deref(strategy.Type, "") != appsv1.RecreateDeploymentStrategyType {
		return err
	}
	var found appsv1.Deployment
	if findErr := pass.Find(ctx, &found, *desired.Name); findErr != nil {
		return findErr
	}
	if found.Spec.Strategy.RollingUpdate == nil {
		return err
	}
	if err := pass.Patch(ctx, &found, `{"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}`); err != nil {
		return err
	}
	*live = appsv1.Deployment{}
	return pass.Apply(ctx, live, desired)
}
