// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	autoscalingv2ac "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	"k8s.io/utils/ptr"

	appv1 "github.com/opdock/opdock/api/app/v1"
)

// defaultCPUTarget is the target of an autoscaler without one.
const defaultCPUTarget = 80

func (r *Reconciler) applyAutoscaler(ctx context.Context, s *scope) error {
	return keepIf(ctx, s, s.app.Spec.Autoscaling != nil, &autoscalingv2.HorizontalPodAutoscaler{}, func() any { return autoscaler(s.app) })
}

func autoscaler(app *appv1.AppService) *autoscalingv2ac.HorizontalPodAutoscalerApplyConfiguration {
	wanted := app.Spec.Autoscaling
	spec := autoscalingv2ac.HorizontalPodAutoscalerSpec().
		WithScaleTargetRef(autoscalingv2ac.CrossVersionObjectReference().
			WithAPIVersion("apps/v1").WithKind("Deployment").WithName(app.Name)).
		WithMaxReplicas(wanted.MaxReplicas)
	spec.MinReplicas = wanted.MinReplicas
	cpu, memory := wanted.TargetCPUUtilizationPercentage, wanted.TargetMemoryUtilizationPercentage
	if cpu == nil && memory == nil {
		cpu = ptr.To[int32](defaultCPUTarget)
	}
	if cpu != nil {
		spec.WithMetrics(utilization(corev1.ResourceCPU, *cpu))
	}
	if memory != nil {
		spec.WithMetrics(utilization(corev1.ResourceMemory, *memory))
	}
	if seconds := wanted.ScaleDownStabilizationSeconds; seconds != nil {
		spec.WithBehavior(autoscalingv2ac.HorizontalPodAutoscalerBehavior().
			WithScaleDown(autoscalingv2ac.HPAScalingRules().WithStabilizationWindowSeconds(*seconds)))
	}
	return autoscalingv2ac.HorizontalPodAutoscaler(app.Name, app.Namespace).WithSpec(spec)
}

func utilization(resource corev1.ResourceName, percent int32) *autoscalingv2ac.MetricSpecApplyConfiguration {
	return autoscalingv2ac.MetricSpec().WithType(autoscalingv2.ResourceMetricSourceType).
		WithResource(autoscalingv2ac.ResourceMetricSource().WithName(resource).
			WithTarget(autoscalingv2ac.MetricTarget().WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(percent)))
}

func (r *Reconciler) applyDisruptionBudget(ctx context.Context, s *scope) error {
	return keepIf(ctx, s, s.app.Spec.DisruptionBudget != nil, &policyv1.PodDisruptionBudget{}, func() any { return disruptionBudget(s.app) })
}

func disruptionBudget(app *appv1.AppService) *policyv1ac.PodDisruptionBudgetApplyConfiguration {
	wanted := app.Spec.DisruptionBudget
	spec := policyv1ac.PodDisruptionBudgetSpec().WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(app)))
	spec.MinAvailable, spec.MaxUnavailable = wanted.MinAvailable, wanted.MaxUnavailable
	spec.UnhealthyPodEvictionPolicy = wanted.UnhealthyPodEvictionPolicy
	return policyv1ac.PodDisruptionBudget(app.Name, app.Namespace).WithSpec(spec)
}
