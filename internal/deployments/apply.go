// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/opdock/opdock/internal/flow"
)

// Apply makes a Deployment be as the configuration says, as the pass's Apply does for children of all types.
//
// The strategy Recreate needs more than can be said in a configuration: the server has filled in how many pods a rolling
// update replaces at a time, and refuses Recreate as long as that is there. So it is taken out by name.
func Apply(ctx context.Context, pass *flow.Pass, live *appsv1.Deployment, desired *appsv1ac.DeploymentApplyConfiguration) error {
	strategy := desired.Spec.Strategy
	if strategy == nil || ptr.Deref(strategy.Type, "") != appsv1.RecreateDeploymentStrategyType {
		return pass.Apply(ctx, live, desired)
	}
	configuration, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return fmt.Errorf("encoding Deployment %s: %w", ptr.Deref(desired.Name, ""), err)
	}
	configuration["spec"].(map[string]any)["strategy"].(map[string]any)["rollingUpdate"] = nil
	return pass.Apply(ctx, live, configuration)
}
