// Copyright The Opdock Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	kubegroupv1 "github.com/opdock/opdock/api/kubegroup/v1"
	"github.com/opdock/opdock/internal/flow"
	"github.com/opdock/opdock/internal/health"
)

// slimPods drops from pods what no controller reads. Only PodClusters compare the spec of pods with their own. Of the pods
// of a Deployment, which the API server can fill with volumes, tolerations and much more, the controllers read whose they
// are and how they are. There is one of these for each replica, so they are most of what a large fleet caches.
//
// What is left of them goes through rest, and the pods of PodClusters go through whole.
func slimPods(whole, rest toolscache.TransformFunc) toolscache.TransformFunc {
	return func(object any) (any, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok || isOfPodCluster(pod) {
			return whole(object)
		}
		pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
		pod.Annotations = nil
		return rest(pod)
	}
}

// isOfPodCluster reports whether a pod is one that PodClusters compare: another writer can change the label of a pod that a
// PodCluster controls, and a pod without a controller is adopted by its labels.
func isOfPodCluster(pod *corev1.Pod) bool {
	if pod.Labels[flow.LabelKind] == podClusterLabel {
		return true
	}
	controller := metav1.GetControllerOfNoCopy(pod)
	return controller != nil && schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind).GroupKind() ==
		schema.GroupKind{Group: kubegroupv1.GroupVersion.Group, Kind: "PodCluster"}
}

// keepHealth drops the managed fields of a pod, because it is not compared with anything, and all of its status that is about
// neither its health nor its addresses.
func keepHealth(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		pod.ManagedFields = nil
		addresses := pod.Status.PodIPs
		pod.Status = health.Relevant(pod.Status)
		pod.Status.PodIPs = addresses
	}
	return object, nil
}

// podClusterLabel is the value of flow.LabelKind on the pods of PodClusters.
const podClusterLabel = "podcluster"
