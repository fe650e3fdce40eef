// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics serves metrics.k8s.io, what metrics-server serves in other
// clusters, from simulated usage: kubectl top and HorizontalPodAutoscalers get
// their numbers from it.
//
// The API is part of the kube-apiserver here and not one of an extension
// server, so that it costs no process, no port and no Service. Its APIService
// has no Service for that reason. An installed metrics-server replaces that APIService.
package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/metrics/pkg/apis/metrics"
	"k8s.io/metrics/pkg/apis/metrics/install"
	"k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/opdock/opdock/controlplane/internal/usage"
)

// window is the time that a sample covers. The autoscaler ignores the CPU usage of a pod that has been ready for less than
// one window, so a long one would only make it wait.
const window = 5 * time.Second

// Scheme has the kinds of the API.
var Scheme = runtime.NewScheme()

func init() {
	install.Install(Scheme)
	metav1.AddToGroupVersion(Scheme, schema.GroupVersion{Version: "v1"})
}

// Install adds the API to a server that has not been started.
func Install(server *genericapiserver.GenericAPIServer, pods corelisters.PodLister, nodes corelisters.NodeLister) error {
	source := source{pods: pods, nodes: nodes, now: time.Now}
	group := genericapiserver.NewDefaultAPIGroupInfo(metrics.GroupName, Scheme, metav1.ParameterCodec, serializer.NewCodecFactory(Scheme))
	group.VersionedResourcesStorageMap[v1beta1.SchemeGroupVersion.Version] = map[string]rest.Storage{
		"pods": podStorage{source}, "nodes": nodeStorage{source},
	}
	if err := server.InstallAPIGroup(&group); err != nil {
		return fmt.Errorf("installing %s: %w", metrics.GroupName, err)
	}
	return nil
}

// source is where the numbers come from.
type source struct {
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
	now   func() time.Time
}

// runs reports whether a pod is measured: a node that does not respond answers for none of its pods.
func (s source) runs(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodRunning {
		return false
	}
	node, err := s.nodes.Get(pod.Spec.NodeName)
	return err == nil && isReady(node)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// groups counts the running pods of each controller.
func (s source) groups(pods []*corev1.Pod) map[types.UID]usage.Group {
	groups := map[types.UID]usage.Group{}
	for _, pod := range pods {
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || pod.DeletionTimestamp != nil || !s.runs(pod) {
			continue
		}
		group := groups[owner.UID]
		group.Size++
		if since := pod.Status.StartTime; since != nil && (group.Since.IsZero() || since.Time.Before(group.Since)) {
			group.Since = since.Time
		}
		groups[owner.UID] = group
	}
	return groups
}

// of returns what a pod uses. The groups must be those of all pods in its namespace at least.
func of(pod *corev1.Pod, groups map[types.UID]usage.Group, now time.Time) []usage.Container {
	group := usage.Group{Size: 1}
	if pod.Status.StartTime != nil {
		group.Since = pod.Status.StartTime.Time
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if shared, found := groups[owner.UID]; found {
			group = shared
		}
	}
	return usage.OfPod(pod, group, now)
}

// podMetrics measures the pods that keep accepts. The namespace may be empty for all.
func (s source) podMetrics(namespace string, keep func(*corev1.Pod) bool) ([]metrics.PodMetrics, error) {
	pods, err := s.pods.Pods(namespace).List(labels.Everything())
	if err != nil {
		return nil, err
	}
	groups, now := s.groups(pods), s.now()
	list := []metrics.PodMetrics{}
	for _, pod := range pods {
		if !s.runs(pod) || !keep(pod) {
			continue
		}
		one := metrics.PodMetrics{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, Labels: pod.Labels, CreationTimestamp: metav1.NewTime(now)},
			Timestamp:  metav1.NewTime(now), Window: metav1.Duration{Duration: window},
		}
		for _, container := range of(pod, groups, now) {
			one.Containers = append(one.Containers, metrics.ContainerMetrics{Name: container.Name, Usage: container.Usage})
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b metrics.PodMetrics) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// nodeMetrics sums up the pods of each node that keep accepts.
func (s source) nodeMetrics(keep func(*corev1.Node) bool) ([]metrics.NodeMetrics, error) {
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	pods, err := s.pods.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	groups, now := s.groups(pods), s.now()
	used := map[string]corev1.ResourceList{}
	for _, pod := range pods {
		if !s.runs(pod) {
			continue
		}
		if used[pod.Spec.NodeName] == nil {
			used[pod.Spec.NodeName] = corev1.ResourceList{}
		}
		for _, container := range of(pod, groups, now) {
			add(used[pod.Spec.NodeName], container.Usage)
		}
	}
	list := []metrics.NodeMetrics{}
	for _, node := range nodes {
		if !isReady(node) || !keep(node) {
			continue
		}
		sum := corev1.ResourceList{}
		for _, name := range usage.Resources {
			sum[name] = used[node.Name][name]
		}
		list = append(list, metrics.NodeMetrics{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, Labels: node.Labels, CreationTimestamp: metav1.NewTime(now)},
			Timestamp:  metav1.NewTime(now), Window: metav1.Duration{Duration: window}, Usage: sum,
		})
	}
	slices.SortFunc(list, func(a, b metrics.NodeMetrics) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
