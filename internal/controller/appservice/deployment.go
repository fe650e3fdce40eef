// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	appv1 "github.com/opdock/opdock/api/app/v1"
	sharedv1 "github.com/opdock/opdock/api/shared/v1"
	"github.com/opdock/opdock/internal/workload"
)

// containerName is the name of the application's container.
const containerName = "app"

func (r *Reconciler) applyDeployment(ctx context.Context, s *scope) error {
	var live appsv1.Deployment
	if err := s.pass.ApplyTo(ctx, &live, s.app.Name, func() (any, error) {
		return deployment(s.app, replicas(s.app, &live, s.pass.OwnsField(&live, "spec", "replicas")))
	}); err != nil {
		return err
	}
	s.deployment = &live
	return nil
}

// replicas returns the number of pods to apply, or nil to leave it to the autoscaler.
//
// While there is an autoscaler, it sets the number. But it sets none before its first measurement, and a number that
// no manager owns falls back to 1. So this controller owns the current number until the autoscaler sets it; the
// server then removes our ownership. A number outside of the autoscaler's bounds does not come from the autoscaler: 0
// would even turn it off.
func replicas(app *appv1.AppService, live *appsv1.Deployment, owned bool) *int32 {
	size := ptr.Deref(app.Spec.Size, 1)
	autoscaling := app.Spec.Autoscaling
	if autoscaling == nil {
		return &size
	}
	least, most := ptr.Deref(autoscaling.MinReplicas, 1), autoscaling.MaxReplicas
	if live.UID != "" {
		size = ptr.Deref(live.Spec.Replicas, 1)
		if !owned && size >= least && size <= most {
			return nil
		}
	}
	return ptr.To(min(max(size, least), most))
}

// deployment returns the desired Deployment of an AppService.
func deployment(app *appv1.AppService, replicas *int32) (*appsv1ac.DeploymentApplyConfiguration, error) {
	secured, err := workload.Secure(podTemplate(app), app.Spec.SecurityProfile)
	if err != nil {
		return nil, err
	}
	template, err := workload.Template(secured, app.Spec.Image, selector(app))
	if err != nil {
		return nil, err
	}
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector(app))).
		WithTemplate(workload.FollowsSpec(template)).
		WithStrategy(workload.Strategy(app.Spec.Strategy))
	if app.Spec.MinReadySeconds != 0 {
		spec.WithMinReadySeconds(app.Spec.MinReadySeconds)
	}
	spec.Replicas = replicas
	spec.ProgressDeadlineSeconds = app.Spec.ProgressDeadlineSeconds
	spec.RevisionHistoryLimit = app.Spec.RevisionHistoryLimit
	return appsv1ac.Deployment(app.Name, app.Namespace).WithSpec(spec), nil
}

// podTemplate puts the parts of a pod, which an AppService holds without a template around them, into one.
func podTemplate(app *appv1.AppService) *sharedv1.PodTemplate {
	spec := app.Spec.DeepCopy()
	return &sharedv1.PodTemplate{
		Metadata: spec.PodMetadata,
		Spec: sharedv1.PodSpec{
			Containers: []sharedv1.Container{{
				Name: containerName, Image: spec.Image, Ports: containerPorts(app), Env: spec.Envs, ContainerSettings: spec.ContainerSettings,
			}},
			SecurityContext: spec.PodSecurityContext,
			PodSettings:     spec.PodSettings,
		},
	}
}

// containerPorts returns the target ports of the Service, each of them once.
func containerPorts(app *appv1.AppService) []sharedv1.ContainerPort {
	type key struct {
		number   int32
		protocol corev1.Protocol
	}
	var result []sharedv1.ContainerPort
	numbers, names := map[key]int{}, map[string]bool{}
	for _, port := range app.Spec.Ports {
		number, name := targetOf(app, port)
		if name != "" && names[name] {
			continue
		}
		at := key{number, port.Protocol}
		index, known := numbers[at]
		if !known {
			index = len(result)
			numbers[at] = index
			result = append(result, sharedv1.ContainerPort{ContainerPort: number, Protocol: port.Protocol})
		}
		if name != "" && result[index].Name == "" {
			result[index].Name = name
			names[name] = true
		}
	}
	return result
}

// targetOf is the number and the name, if it has one, of the container's port behind a port of the Service. A name identifies
// one port of one protocol; a port of another protocol is identified by its number.
func targetOf(app *appv1.AppService, port appv1.ServicePort) (number int32, name string) {
	switch target := port.TargetPort; {
	case target == nil:
		return port.Port, ""
	case target.Type == intstr.Int:
		return target.IntVal, ""
	}
	first := slices.IndexFunc(app.Spec.Ports, func(p appv1.ServicePort) bool { return p.TargetPort != nil && *p.TargetPort == *port.TargetPort })
	if app.Spec.Ports[first].Protocol != port.Protocol {
		return port.Port, ""
	}
	return port.Port, port.TargetPort.StrVal
}
