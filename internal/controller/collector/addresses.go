// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	collectorv1 "github.com/opdock/opdock/api/collector/v1"
	"github.com/opdock/opdock/internal/health"
)

func (r *Reconciler) collect(ctx context.Context, s *scope) error {
	var pods []corev1.Pod
	for _, reader := range r.Pods {
		var list corev1.PodList
		err := reader.List(ctx, &list, client.InNamespace(s.collector.Namespace), client.MatchingLabelsSelector{Selector: s.selector},
			client.UnsafeDisableDeepCopy) // nothing here changes them
		if err != nil {
			return fmt.Errorf("listing pods: %w", err)
		}
		pods = append(pods, list.Items...)
	}
	s.addresses = addresses(pods, s.collector.Spec)
	return nil
}

// addresses returns the addresses of the pods that a Collector selects, sorted by address and then by pod.
func addresses(items []corev1.Pod, spec collectorv1.CollectorSpec) []collectorv1.Address {
	type sortable struct {
		collectorv1.Address
		parsed netip.Addr
	}
	var found []sortable
	for i := range items {
		for _, address := range addressesOf(&items[i]) {
			parsed, err := netip.ParseAddr(address.IP)
			if err != nil || !wanted(address, parsed, spec) {
				continue
			}
			found = append(found, sortable{address, parsed})
		}
	}
	slices.SortFunc(found, func(a, b sortable) int { return cmp.Or(a.parsed.Compare(b.parsed), cmp.Compare(a.Pod, b.Pod)) })
	// A pod that changes from one cache to the other may be in both for a moment.
	found = slices.CompactFunc(found, func(a, b sortable) bool { return a.parsed == b.parsed && a.Pod == b.Pod })
	var result []collectorv1.Address
	for _, address := range found {
		result = append(result, address.Address)
	}
	return result
}

func wanted(address collectorv1.Address, parsed netip.Addr, spec collectorv1.CollectorSpec) bool {
	if spec.Readiness == collectorv1.ReadinessReady && !address.Ready {
		return false
	}
	family := corev1.IPv6Protocol
	if parsed.Is4() {
		family = corev1.IPv4Protocol
	}
	return len(spec.IPFamilies) == 0 || slices.Contains(spec.IPFamilies, family)
}

// addressesOf are the addresses that a pod has, of whichever kind. One that has ended has given them back.
func addressesOf(pod *corev1.Pod) []collectorv1.Address {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var result []collectorv1.Address
	for _, ip := range pod.Status.PodIPs {
		result = append(result, collectorv1.Address{
			IP: ip.IP, Pod: pod.Name, Node: pod.Spec.NodeName, Ready: health.IsReady(pod), Owner: ownerOf(pod),
		})
	}
	return result
}

// maxKind and maxName are the longest kind and name that an owner in the status can have.
const maxKind, maxName = 63, 253

// ownerOf returns the object that manages a pod. For a Deployment, it is found through the ReplicaSet, whose name is
// the Deployment's with a hash that is also a label of the pod.
func ownerOf(pod *corev1.Pod) *collectorv1.Owner {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || len(owner.Kind) > maxKind || len(owner.Name) > maxName {
		return nil // the API server accepts any text, and our status does not
	}
	if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, found := strings.CutSuffix(owner.Name, "-"+hash); found && name != "" {
			return &collectorv1.Owner{Kind: "Deployment", Name: name}
		}
	}
	return &collectorv1.Owner{Kind: owner.Kind, Name: owner.Name}
}
