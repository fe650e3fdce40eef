// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	appv1 "github.com/opdock/opdock/api/app/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

// setStatus copies the status of the children.
//
// Right after an apply, the status of the Deployment is still about its old spec. Conditions then keep the generation that
// they were observed for, and pods of the old spec do not count as updated. Only a new generation of the AppService makes
// a difference: each step of an autoscaler gives the Deployment a new one, too.
func setStatus(s *scope) {
	status := &s.app.Status
	status.Selector = labels.SelectorFromSet(selector(s.app)).String()
	status.URL = url(s)
	if s.deployment == nil {
		return
	}
	from := s.deployment.Status
	status.Replicas = from.Replicas
	status.UpdatedReplicas = from.UpdatedReplicas
	status.ReadyReplicas = from.ReadyReplicas
	status.AvailableReplicas = from.AvailableReplicas
	status.UnavailableReplicas = from.UnavailableReplicas
	status.TerminatingReplicas = from.TerminatingReplicas
	status.CollisionCount = from.CollisionCount
	isBehind := s.deployment.Status.ObservedGeneration < s.deployment.Generation
	for _, conditionType := range []string{appv1.ConditionAvailable, appv1.ConditionProgressing, appv1.ConditionReplicaFailure} {
		condition := health.Condition(s.deployment, appsv1.DeploymentConditionType(conditionType))
		if condition == nil {
			meta.RemoveStatusCondition(&status.Conditions, conditionType)
			continue
		}
		observed := s.app.Generation
		known := meta.FindStatusCondition(status.Conditions, conditionType)
		if isBehind && (known == nil || known.ObservedGeneration < observed) {
			status.UpdatedReplicas = 0
			if known == nil {
				continue
			}
			observed = known.ObservedGeneration
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionStatus(condition.Status), ObservedGeneration: observed,
			Reason: flow.ConditionReason(condition.Reason), Message: condition.Message,
		})
	}
}

// url is where the application can be reached from as far away as possible.
func url(s *scope) string {
	if s.ingress != nil {
		if address := ingressURL(s.app.Spec.Ingress, s.ingress); address != "" {
			return address
		}
	}
	if s.service == nil || len(s.app.Spec.Ports) == 0 {
		return ""
	}
	port := s.app.Spec.Ports[0]
	scheme := "http"
	switch {
	case port.Protocol == corev1.ProtocolUDP || port.Protocol == corev1.ProtocolSCTP:
		return ""
	case ptr.Deref(port.AppProtocol, "") == "https" || port.Port == 443:
		scheme = "https"
	}
	for _, balancer := range s.service.Status.LoadBalancer.Ingress {
		return address(scheme, cmp.Or(balancer.Hostname, balancer.IP), port.Port)
	}
	return address(scheme, fmt.Sprintf("%s.%s.svc", s.app.Name, s.app.Namespace), port.Port)
}

func ingressURL(wanted *appv1.Ingress, live *networkingv1.Ingress) string {
	for _, rule := range wanted.Rules {
		host := rule.Host
		scheme, port := "http", int32(80)
		if slices.ContainsFunc(wanted.TLS, func(tls appv1.IngressTLS) bool { return slices.Contains(tls.Hosts, host) }) {
			scheme, port = "https", 443
		}
		for _, balancer := range live.Status.LoadBalancer.Ingress {
			if host == "" {
				host = cmp.Or(balancer.Hostname, balancer.IP)
			}
		}
		if host != "" && host[0] != '*' {
			path := rule.Path
			if path == "/" {
				path = ""
			}
			return address(scheme, host, port) + path
		}
	}
	return ""
}

// address omits the default port of the scheme.
func address(scheme, host string, port int32) string {
	if scheme == "http" && port == 80 || scheme == "https" && port == 443 {
		if ip := net.ParseIP(host); ip != nil && ip.To4() == nil {
			host = "[" + host + "]"
		}
		return scheme + "://" + host
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(int(port)))
}
