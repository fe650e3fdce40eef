// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"
	"encoding/json"
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/utils/ptr"

	appv1 "github.com/opdock/opdock/api/app/v1"
)

func (r *Reconciler) applyIngress(ctx context.Context, s *scope) error {
	var live networkingv1.Ingress
	wanted := s.app.Spec.Ingress != nil
	if err := keepIf(ctx, s, wanted, &live, func() any { return ingress(s.app) }); err != nil {
		return err
	}
	if wanted {
		s.ingress = &live
	}
	return nil
}

// ingress has one rule for each host, in the order in which the hosts first appear.
func ingress(app *appv1.AppService) *networkingv1ac.IngressApplyConfiguration {
	wanted := app.Spec.Ingress
	spec := networkingv1ac.IngressSpec()
	spec.IngressClassName = wanted.ClassName
	byHost := map[string]*networkingv1ac.HTTPIngressRuleValueApplyConfiguration{}
	var hosts []string
	for _, rule := range wanted.Rules {
		paths, known := byHost[rule.Host]
		if !known {
			paths = networkingv1ac.HTTPIngressRuleValue()
			byHost[rule.Host] = paths
			hosts = append(hosts, rule.Host)
		}
		paths.WithPaths(networkingv1ac.HTTPIngressPath().
			WithPath(rule.Path).WithPathType(orPrefix(rule.PathType)).
			WithBackend(networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
				WithName(app.Name).WithPort(networkingv1ac.ServiceBackendPort().WithNumber(ingressPort(app, rule))))))
	}
	for _, host := range hosts {
		rule := networkingv1ac.IngressRule().WithHTTP(byHost[host])
		if host != "" {
			rule.WithHost(host)
		}
		spec.WithRules(rule)
	}
	for _, tls := range wanted.TLS {
		spec.WithTLS(networkingv1ac.IngressTLS().WithSecretName(tls.SecretName).WithHosts(tls.Hosts...))
	}
	result := networkingv1ac.Ingress(app.Name, app.Namespace).WithSpec(spec)
	if len(wanted.Annotations) > 0 {
		result.WithAnnotations(wanted.Annotations)
	}
	return result
}

func orPrefix(pathType networkingv1.PathType) networkingv1.PathType {
	if pathType == "" {
		return networkingv1.PathTypePrefix
	}
	return pathType
}

func ingressPort(app *appv1.AppService, rule appv1.IngressRule) int32 {
	if rule.Port != nil || len(app.Spec.Ports) == 0 {
		return ptr.Deref(rule.Port, 0)
	}
	return app.Spec.Ports[0].Port
}

func (r *Reconciler) applyNetworkPolicy(ctx context.Context, s *scope) error {
	if s.app.Spec.NetworkPolicy == nil {
		return keepIf(ctx, s, false, &networkingv1.NetworkPolicy{}, nil)
	}
	desired, err := networkPolicy(s.app)
	if err != nil {
		return err
	}
	return s.pass.Apply(ctx, &networkingv1.NetworkPolicy{}, desired)
}

// networkPolicy admits traffic from the listed peers to the application's ports. A policy without a list admits
// no traffic.
func networkPolicy(app *appv1.AppService) (*networkingv1ac.NetworkPolicyApplyConfiguration, error) {
	spec := networkingv1ac.NetworkPolicySpec().
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(selector(app))).
		WithPolicyTypes(networkingv1.PolicyTypeIngress)
	if peers := app.Spec.NetworkPolicy.From; len(peers) > 0 {
		rule := networkingv1ac.NetworkPolicyIngressRule()
		for _, peer := range peers {
			converted, err := networkPeer(peer)
			if err != nil {
				return nil, err
			}
			rule.WithFrom(converted)
		}
		for _, port := range containerPorts(app) {
			allowed := networkingv1ac.NetworkPolicyPort().WithPort(intstr.FromInt32(port.ContainerPort))
			if port.Protocol != "" {
				allowed.WithProtocol(port.Protocol)
			}
			rule.WithPorts(allowed)
		}
		spec.WithIngress(rule)
	}
	return networkingv1ac.NetworkPolicy(app.Name, app.Namespace).WithSpec(spec), nil
}

func networkPeer(peer appv1.NetworkPeer) (*networkingv1ac.NetworkPolicyPeerApplyConfiguration, error) {
	result := networkingv1ac.NetworkPolicyPeer()
	if block := peer.IPBlock; block != nil {
		return result.WithIPBlock(networkingv1ac.IPBlock().WithCIDR(block.CIDR).WithExcept(block.Except...)), nil
	}
	var err error
	if result.PodSelector, err = labelSelector(peer.PodSelector); err != nil {
		return nil, err
	}
	result.NamespaceSelector, err = labelSelector(peer.NamespaceSelector)
	return result, err
}

func labelSelector(selector *metav1.LabelSelector) (*metav1ac.LabelSelectorApplyConfiguration, error) {
	if selector == nil {
		return nil, nil //nolint:nilnil // a nil selector has its own meaning
	}
	data, err := json.Marshal(selector)
	if err != nil {
		return nil, fmt.Errorf("encoding a selector: %w", err)
	}
	result := metav1ac.LabelSelector()
	return result, json.Unmarshal(data, result)
}
