// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package appservice

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/utils/ptr"
)

// annotationDefaultClass on an Ingress holds its class if the spec names none: the one that the cluster gave it.
const annotationDefaultClass = "opdock.dev/default-ingress-class"

// ingressLike returns the desired Ingress of an AppService that has an Ingress already.
//
// If the spec names no class, the cluster gives its default class to a new Ingress, and only to a new one. No manager owns that
// class, so nothing would show that it was removed, and to revert another class would leave none. So it becomes part of the
// configuration as soon as it is known.
func ingressLike(ctx context.Context, s *scope, live *networkingv1.Ingress) (*networkingv1ac.IngressApplyConfiguration, error) {
	desired := ingress(s.app)
	if s.app.Spec.Ingress.ClassName != nil || live.UID == "" {
		return desired, nil
	}
	class, err := defaultClass(ctx, s, live, desired)
	if err != nil || class == "" {
		return desired, err
	}
	desired.Spec.WithIngressClassName(class)
	return desired.WithAnnotations(map[string]string{annotationDefaultClass: class}), nil
}

// defaultClass returns the class that the cluster gave to an Ingress; empty if it has no default class. To read the classes
// would take one more permission.
func defaultClass(ctx context.Context, s *scope, live *networkingv1.Ingress, open *networkingv1ac.IngressApplyConfiguration) (string, error) {
	if isOurs, _ := s.pass.WhoSet(live, "metadata", "annotations", annotationDefaultClass); isOurs {
		return live.Annotations[annotationDefaultClass], nil
	}
	if class := live.Spec.IngressClassName; class != nil {
		if isOurs, others := s.pass.WhoSet(live, "spec", "ingressClassName"); !isOurs && others == "" {
			return *class, nil
		}
	} else if applied, err := s.pass.IsApplied(live, open); applied || err != nil {
		return "", err
	}
	// Another writer has set or removed the class, or the spec has named one before.
	return askForClass(ctx, s)
}

// askForClass asks the server, by a dry run, which class a new Ingress gets. It has no rules, because controllers of ingresses
// reject two with the same host.
func askForClass(ctx context.Context, s *scope) (string, error) {
	probe := networkingv1ac.Ingress(s.app.Name, s.app.Namespace).WithSpec(networkingv1ac.IngressSpec().WithDefaultBackend(
		networkingv1ac.IngressBackend().WithService(networkingv1ac.IngressServiceBackend().
			WithName(s.app.Name).WithPort(networkingv1ac.ServiceBackendPort().WithNumber(1)))))
	var created networkingv1.Ingress
	err := s.pass.Rehearse(ctx, &created, probe)
	return ptr.Deref(created.Spec.IngressClassName, ""), err
}
