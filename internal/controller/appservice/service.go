// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"

	appv1 "github.com/opdock/opdock/api/app/v1"
)

func (r *Reconciler) applyService(ctx context.Context, s *scope) error {
	var live corev1.Service
	wanted := len(s.app.Spec.Ports) > 0
	if err := keepIf(ctx, s, wanted, &live, func() any { return service(s.app) }); err != nil {
		return err
	}
	if wanted {
		s.service = &live
	}
	return nil
}

// service returns the desired Service of an AppService. The cluster chooses addresses and node ports that the spec
// leaves open.
func service(app *appv1.AppService) *corev1ac.ServiceApplyConfiguration {
	settings := ptr.Deref(app.Spec.Service, appv1.ServiceSettings{})
	spec := corev1ac.ServiceSpec().WithSelector(selector(app))
	switch kind := serviceType(app); kind {
	case appv1.ServiceTypeHeadless:
		spec.WithType(corev1.ServiceTypeClusterIP).WithClusterIP(corev1.ClusterIPNone)
	default:
		spec.WithType(corev1.ServiceType(kind))
		if settings.ExternalTrafficPolicy != "" && kind != appv1.ServiceTypeClusterIP {
			spec.WithExternalTrafficPolicy(settings.ExternalTrafficPolicy)
		}
	}
	if settings.SessionAffinity != "" {
		spec.WithSessionAffinity(settings.SessionAffinity)
	}
	spec.LoadBalancerClass = settings.LoadBalancerClass
	for _, port := range app.Spec.Ports {
		spec.WithPorts(servicePort(app, port))
	}
	result := corev1ac.Service(app.Name, app.Namespace).WithSpec(spec)
	if len(settings.Annotations) > 0 {
		result.WithAnnotations(settings.Annotations)
	}
	return result
}

func servicePort(app *appv1.AppService, port appv1.ServicePort) *corev1ac.ServicePortApplyConfiguration {
	number, name := targetOf(app, port)
	target := intstr.FromInt32(number)
	if name != "" {
		target = intstr.FromString(name)
	}
	result := corev1ac.ServicePort().WithPort(port.Port).WithTargetPort(target)
	if port.Protocol != "" {
		result.WithProtocol(port.Protocol)
	}
	if port.Name != "" {
		result.WithName(port.Name)
	}
	result.NodePort = port.NodePort
	result.AppProtocol = port.AppProtocol
	return result
}

// serviceType returns the requested type; a node port implies NodePort.
func serviceType(app *appv1.AppService) appv1.ServiceType {
	switch {
	case app.Spec.Service != nil && app.Spec.Service.Type != "":
		return app.Spec.Service.Type
	case slices.ContainsFunc(app.Spec.Ports, func(port appv1.ServicePort) bool { return port.NodePort != nil }):
		return appv1.ServiceTypeNodePort
	default:
		return appv1.ServiceTypeClusterIP
	}
}
