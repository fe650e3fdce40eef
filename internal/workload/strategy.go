// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/utils/ptr"

	sharedv1 "github.com/opdock/opdock/api/shared/v1"
)

// defaultShare is how many pods a rolling update replaces at a time unless something else is said, as with any
// Deployment.
const defaultShare = "25%"

// Strategy makes Kubernetes' strategy of ours. It is always given in full, so that all of it is ours: what others
// change is corrected, and what is taken back is gone.
func Strategy(of *sharedv1.DeploymentStrategy) *appsv1ac.DeploymentStrategyApplyConfiguration {
	strategy := ptr.Deref(of, sharedv1.DeploymentStrategy{})
	result := appsv1ac.DeploymentStrategy().WithType(cmp.Or(strategy.Type, appsv1.RollingUpdateDeploymentStrategyType))
	if *result.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return result
	}
	rolling := ptr.Deref(strategy.RollingUpdate, sharedv1.RollingUpdate{})
	return result.WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
		WithMaxUnavailable(ptr.Deref(rolling.MaxUnavailable, intstr.FromString(defaultShare))).
		WithMaxSurge(ptr.Deref(rolling.MaxSurge, intstr.FromString(defaultShare))))
}
